import { providerClasses, type ClassSettings, type Kind, type LabClass, type ProviderClass } from './provider-classes.js';
import type { Mode } from './modes.js';
import { bareReference } from './references.js';

/** One call, as the lab remembers it. Never a body, never an address. */
export interface Entry {
  readonly seq: number;
  readonly class: LabClass;
  readonly kind: Kind;
  /** The `Idempotency-Key` header, or the Message-ID; recorded also where the class ignores it. */
  readonly providerKey: string | null;
  readonly businessReference: string | null;
  /** The effect's id; of a replay the first call's. */
  readonly id: string | null;
  readonly mode: Mode;
  readonly at: number;
  /** HTTP or SMTP status the caller was sent; null: no answer. */
  readonly status: number | null;
  readonly replayed: boolean;
  /** Digest of the request, where a key binds to it. */
  readonly digest: string | null;
  readonly amountMinor: number | null;
  readonly currency: string | null;
  /** When the effect of a late landing is due; null when it landed, was dropped, or there is none. */
  landAt: number | null;
  /** When the effect happened; null: no effect. */
  effectAt: number | null;
}

export interface Totals {
  calls: number;
  effects: number;
  lookups: number;
  references: number;
  maxEffectsPerReference: number;
  maxEffectsPerBusinessReference: number;
  unreferencedEffects: number;
  pendingLandings: number;
}

/** Counts effects by class, kind and reference. */
class EffectCounts {
  private readonly scopes = new Map<string, Map<string, number>>();
  distinct = 0;
  max = 0;

  add(entry: Entry, reference: string): number {
    const scope = `${entry.class}/${entry.kind}`;
    let counts = this.scopes.get(scope);
    if (counts === undefined) this.scopes.set(scope, (counts = new Map()));
    const count = (counts.get(reference) ?? 0) + 1;
    counts.set(reference, count);
    if (count === 1) this.distinct += 1;
    this.max = Math.max(this.max, count);
    return count;
  }

  of(labClass: LabClass, kind: Kind, reference: string): number {
    return this.scopes.get(`${labClass}/${kind}`)?.get(reference) ?? 0;
  }
}

/**
 * What really happened, with the indexes and counters that keep every question about it cheap.
 *
 * When did one intent become two effects? An intent is what the caller names by one provider key, within one class
 * and kind; only a call without a key is named by its business reference. So revisions of one business object, which
 * share a business reference, are intents of their own, and so are the same reference in two classes. The one double
 * this cannot see is a caller that invents a fresh key for a repeat: `maxEffectsPerBusinessReference` shows that one,
 * in a run where each intent has a business reference of its own. An effect without either name belongs to no
 * reference and is counted in `unreferencedEffects`.
 */
export class Ledger {
  private byReference = new Map<string, Entry | Entry[]>();
  private lookupsByReference = new Map<string, number>();
  private byIntent = new EffectCounts();
  private byBusinessReference = new EffectCounts();
  private readonly keys = new Map<ProviderClass, Map<string, Entry>>();
  /** First entry of each intent with more than one effect. */
  private doubled = new Set<Entry>();
  private landings = new Map<number, Entry>();
  private calls = 0;
  private effects = 0;
  private lookups = 0;
  private unreferenced = 0;
  private lastSeq = 0;

  constructor() {
    this.clear();
  }

  nextSeq(): number {
    return this.lastSeq + 1;
  }

  /** Adds a call; `settings` are the class's at that moment and decide whether its key is remembered. */
  add(entry: Entry, settings: ClassSettings | null): void {
    this.lastSeq = Math.max(this.lastSeq, entry.seq);
    this.calls += 1;
    this.index(entry);
    if (settings !== null && entry.providerKey !== null && bindsKey(entry, settings)) {
      this.keys.get(entry.class as ProviderClass)?.set(entry.providerKey, entry);
    }
    if (entry.landAt !== null) this.landings.set(entry.seq, entry);
    if (entry.effectAt !== null) this.count(entry);
  }

  /** The effect of a late landing happens. */
  land(seq: number, at: number): void {
    const entry = this.endLanding(seq);
    if (entry === undefined) return;
    entry.effectAt = at;
    this.count(entry);
  }

  /** A late landing is rejected when it arrives. */
  drop(seq: number): void {
    this.endLanding(seq);
  }

  addLookup(reference: string): void {
    this.lookups += 1;
    const bare = bareReference(reference);
    this.lookupsByReference.set(bare, (this.lookupsByReference.get(bare) ?? 0) + 1);
  }

  /** The call a key is bound to, when the class still remembers it. */
  remembered(name: ProviderClass, key: string, settings: ClassSettings, now: number): Entry | null {
    const entry = this.keys.get(name)?.get(key);
    return entry !== undefined && now < entry.at + settings.keyRetentionMs ? entry : null;
  }

  hasEffect(labClass: LabClass, kind: Kind, businessReference: string): boolean {
    return this.byBusinessReference.of(labClass, kind, bareReference(businessReference)) > 0;
  }

  /** All calls that carry the reference as key or business reference, in order of arrival. */
  entriesOf(reference: string): readonly Entry[] {
    const found = this.byReference.get(bareReference(reference));
    return found === undefined ? [] : Array.isArray(found) ? found : [found];
  }

  lookupsOf(reference: string): number {
    return this.lookupsByReference.get(bareReference(reference)) ?? 0;
  }

  pendingLandings(): readonly Entry[] {
    return [...this.landings.values()];
  }

  /** Intents with more than one effect, at most `limit` of them. */
  duplicates(limit: number): { entry: Entry; reference: string; effects: number }[] {
    return [...this.doubled].slice(0, limit).map((entry) => {
      const reference = intentOf(entry) ?? '';
      return { entry, reference, effects: this.byIntent.of(entry.class, entry.kind, reference) };
    });
  }

  totals(): Totals {
    return {
      calls: this.calls,
      effects: this.effects,
      lookups: this.lookups,
      references: this.byIntent.distinct,
      maxEffectsPerReference: this.byIntent.max,
      maxEffectsPerBusinessReference: this.byBusinessReference.max,
      unreferencedEffects: this.unreferenced,
      pendingLandings: this.landings.size,
    };
  }

  clear(): void {
    this.byReference = new Map();
    this.lookupsByReference = new Map();
    this.byIntent = new EffectCounts();
    this.byBusinessReference = new EffectCounts();
    for (const name of providerClasses) this.keys.set(name, new Map());
    this.doubled = new Set();
    this.landings = new Map();
    this.calls = this.effects = this.lookups = this.unreferenced = 0;
  }

  private endLanding(seq: number): Entry | undefined {
    const entry = this.landings.get(seq);
    if (entry === undefined) return undefined;
    this.landings.delete(seq);
    entry.landAt = null;
    return entry;
  }

  private count(entry: Entry): void {
    this.effects += 1;
    if (entry.businessReference !== null) this.byBusinessReference.add(entry, bareReference(entry.businessReference));
    const intent = intentOf(entry);
    if (intent === null) this.unreferenced += 1;
    else if (this.byIntent.add(entry, intent) === 2) this.doubled.add(entry);
  }

  private index(entry: Entry): void {
    const key = entry.providerKey === null ? null : bareReference(entry.providerKey);
    const reference = entry.businessReference === null ? null : bareReference(entry.businessReference);
    if (key !== null) this.indexUnder(key, entry);
    if (reference !== null && reference !== key) this.indexUnder(reference, entry);
  }

  /** Most references have one call: a bare entry instead of a list of one saves a third of the index at a million calls. */
  private indexUnder(reference: string, entry: Entry): void {
    const found = this.byReference.get(reference);
    if (found === undefined) this.byReference.set(reference, entry);
    else if (Array.isArray(found)) found.push(entry);
    else this.byReference.set(reference, [found, entry]);
  }
}

const intentOf = (entry: Entry): string | null => {
  const name = entry.providerKey ?? entry.businessReference;
  return name === null ? null : bareReference(name);
};

/** A call that was carried out binds its key; a refusal, a replay or a lost request does not. */
function bindsKey(entry: Entry, settings: ClassSettings): boolean {
  if (entry.replayed) return false;
  const isError = storedStatus(entry) !== 200;
  if (isError && settings.keyStores === 'successes') return false;
  if (entry.mode === 'SAVED_500') return entry.status === 500;
  if (entry.mode === 'D402') return entry.status === 402;
  return entry.effectAt !== null || entry.landAt !== null;
}

/** The status that a replay of this call answers. */
export function storedStatus(entry: Entry): 200 | 402 | 500 {
  if (entry.mode === 'SAVED_500') return 500;
  return entry.mode === 'D402' ? 402 : 200;
}
