import { providerClasses, type ProviderClass } from '#apps/provider-lab/src/provider-classes.js';
import type { ActionDefinition, Catalogue, HttpOutcomes, LookupPolicy, OperationPolicy, ProviderDefinition } from '#domain';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

export const LEASE_MS = 10 * SECOND;
/** Longest time after its sending in which a request may still take effect. */
export const LANDING_MS = 6 * SECOND;
export const VISIBILITY_LAG_MS = 5 * SECOND;
const TIMEOUT_MS = 2 * SECOND;
/** Class B forgets so soon that runs get there. Its margin bears a clock that is stepped by 30 s, a lease and a landing. */
export const SHORT_RETENTION_MS = 150 * SECOND;
const SHORT_MARGIN_MS = 60 * SECOND;

const common = { max_attempts: 4, backoff: { initial_ms: 500, factor: 2, max_ms: 10 * SECOND }, lease_ms: LEASE_MS };
const lookup: LookupPolicy = {
  consistent: true,
  visibility_lag_ms: 0,
  landing_ms: LANDING_MS,
  first_check_ms: SECOND,
  max_checks: 5,
  backoff: { initial_ms: SECOND, factor: 2, max_ms: 8 * SECOND },
};

/** What the fault catalogue says each provider class needs; the same ways as in `onefold.yaml`. */
export const POLICIES: Readonly<Record<ProviderClass, OperationPolicy>> = {
  a: {
    ...common,
    on_unknown: ['same_key_retry', 'lookup', 'review'],
    same_key: { by: 'key', retention_ms: 24 * HOUR, margin_ms: HOUR, repeats_stored_errors: true },
    lookup,
  },
  b: {
    ...common,
    on_unknown: ['lookup', 'same_key_retry', 'review'],
    same_key: { by: 'key', retention_ms: SHORT_RETENTION_MS, margin_ms: SHORT_MARGIN_MS, repeats_stored_errors: false },
    lookup,
  },
  c: { ...common, on_unknown: ['lookup', 'review'], same_key: null, lookup },
  d: {
    ...common,
    on_unknown: ['lookup', 'review'],
    same_key: null,
    lookup: { ...lookup, consistent: false, visibility_lag_ms: VISIBILITY_LAG_MS },
  },
  e: { ...common, on_unknown: ['same_key_retry', 'review'], same_key: { by: 'reference' }, lookup: null },
  f: { ...common, on_unknown: ['review'], same_key: null, lookup: null },
};

const declared = { final: [400, 402, 404, 422], notConsumed: [429] };

/** As `onefold.yaml` declares them: 409 means "in progress", and "already done" where a repeated reference is rejected. */
export function outcomesOf(providerClass: ProviderClass): HttpOutcomes {
  return providerClass === 'e' ? { ...declared, inProgress: [], alreadyDone: [409] } : { ...declared, inProgress: [409], alreadyDone: [] };
}

export const providerName = (providerClass: ProviderClass): string => `lab_${providerClass}`;
export const actionName = (providerClass: ProviderClass): string => `lab_${providerClass}.payment_order.create`;

export function catalogueOf(policies: Readonly<Record<ProviderClass, OperationPolicy>>): Catalogue {
  const actions = providerClasses.map((providerClass): ActionDefinition => ({
    actionType: actionName(providerClass),
    provider: providerName(providerClass),
    risk: 'irreversible',
    identity: [],
    payloadSchema: null,
    presentational: ['/reason'],
    policy: policies[providerClass],
    validatePayload: () => [],
  }));
  const providers = providerClasses.map((providerClass): ProviderDefinition => ({
    name: providerName(providerClass),
    kind: 'http',
    timeoutMs: TIMEOUT_MS,
    limits: { concurrency: 4, perSecond: null },
    // A and C are tried with a look-up when they half-open, E with an attempt, and the others have no breaker.
    breaker: 'ace'.includes(providerClass)
      ? { failures: 3, windowMs: 5 * SECOND, halfOpen: providerClass === 'e' ? 'attempt' : 'lookup' }
      : null,
  }));
  return {
    actions: new Map(actions.map((action) => [action.actionType, action])),
    providers: new Map(providers.map((provider) => [provider.name, provider])),
  };
}
