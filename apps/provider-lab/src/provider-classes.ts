import { FieldFault, integerOf, objectOf, wordOf, type Fields } from './fields.js';

/** The provider classes, from the most helpful (`a`) to the least (`f`). */
export const providerClasses = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
export type ProviderClass = (typeof providerClasses)[number];
/** A ledger entry's class: a provider class, or the mail server. */
export type LabClass = ProviderClass | 'smtp';

/** What each HTTP kind's ids start with. */
export const kindPrefixes = { 'payment-orders': 'po', refunds: 're', tickets: 'tk', messages: 'msg' } as const;
export type HttpKind = keyof typeof kindPrefixes;
export const httpKinds = Object.keys(kindPrefixes) as HttpKind[];
export type Kind = HttpKind | 'mail';

/** What a class can do at all; fixed. */
export interface ClassRules {
  readonly honoursKeys: boolean;
  readonly lookup: boolean;
  readonly uniqueReference: boolean;
}

export const classRules: Record<ProviderClass, ClassRules> = {
  a: { honoursKeys: true, lookup: true, uniqueReference: false },
  b: { honoursKeys: true, lookup: true, uniqueReference: false },
  c: { honoursKeys: false, lookup: true, uniqueReference: false },
  d: { honoursKeys: false, lookup: true, uniqueReference: false },
  e: { honoursKeys: false, lookup: false, uniqueReference: true },
  f: { honoursKeys: false, lookup: false, uniqueReference: false },
};

export const lookupFaults = ['none', '403', '500', 'two_matches', 'other_amount', 'timeout'] as const;
export type LookupFault = (typeof lookupFaults)[number];

/** How well a class does it; `PUT /lab/class/{class}` changes these. */
export interface ClassSettings {
  /** How long a key is remembered, from the call that used it first. */
  readonly keyRetentionMs: number;
  /** `successes`: an error answer is forgotten at once, so the same key may cause a second effect. */
  readonly keyStores: 'all' | 'successes';
  /** A look-up sees an effect this long after it happened. */
  readonly visibilityLagMs: number;
  readonly lookupFault: LookupFault;
}

const day = 24 * 60 * 60 * 1000;
const base: ClassSettings = { keyRetentionMs: day, keyStores: 'all', visibilityLagMs: 0, lookupFault: 'none' };

/** What the classes start with, and have again after a reset. */
export const initialSettings: Record<ProviderClass, ClassSettings> = {
  a: base,
  b: { ...base, keyRetentionMs: 60_000, keyStores: 'successes' },
  c: base,
  d: { ...base, visibilityLagMs: 3_000 },
  e: base,
  f: base,
};

const keyFields = ['key_retention_ms', 'key_stores'];
const lookupFields = ['visibility_lag_ms', 'lookup_fault'];

/** The fields a class can be told: none for `e` and `f`, which have neither keys nor look-up. */
export function settableFields(name: ProviderClass): readonly string[] {
  const rules = classRules[name];
  return [...(rules.honoursKeys ? keyFields : []), ...(rules.lookup ? lookupFields : [])];
}

/** The settings with the body's fields over them. Throws {@link FieldFault}. */
export function changedSettings(name: ProviderClass, settings: ClassSettings, body: unknown): ClassSettings {
  const allowed = settableFields(name);
  const fields: Fields = objectOf(body, 'body');
  const wrong = Object.keys(fields).find((field) => !allowed.includes(field));
  if (wrong !== undefined) throw new FieldFault(wrong, `cannot be set for class ${name}`, allowed);
  return {
    keyRetentionMs: integerOf(fields, 'key_retention_ms', 0, 30 * day, settings.keyRetentionMs),
    keyStores: wordOf(fields, 'key_stores', ['all', 'successes'], settings.keyStores),
    visibilityLagMs: integerOf(fields, 'visibility_lag_ms', 0, day, settings.visibilityLagMs),
    lookupFault: wordOf(fields, 'lookup_fault', lookupFaults, settings.lookupFault),
  };
}

/** The settings as `PUT /lab/class/{class}` answers them: only what the class has. */
export function settingsJson(name: ProviderClass, settings: ClassSettings): Record<string, unknown> {
  const all: Record<string, unknown> = {
    key_retention_ms: settings.keyRetentionMs,
    key_stores: settings.keyStores,
    visibility_lag_ms: settings.visibilityLagMs,
    lookup_fault: settings.lookupFault,
  };
  return Object.fromEntries([['class', name], ...settableFields(name).map((field) => [field, all[field]])]);
}
