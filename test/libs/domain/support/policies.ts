import type { LookupPolicy, OperationPolicy } from '#domain';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

export const LEASE_MS = 10 * SECOND;
export const FIRST_CHECK_MS = SECOND;
/** How long after its sending a request may still take effect. */
export const LANDING_MS = 30 * SECOND;
export const VISIBILITY_LAG_MS = MINUTE;

const common = { max_attempts: 3, backoff: { initial_ms: SECOND, factor: 2, max_ms: MINUTE }, lease_ms: LEASE_MS };

const lookup: LookupPolicy = {
  consistent: true,
  visibility_lag_ms: 0,
  landing_ms: LANDING_MS,
  first_check_ms: FIRST_CHECK_MS,
  max_checks: 4,
  backoff: { initial_ms: 2 * SECOND, factor: 2, max_ms: MINUTE },
};

/** The policy to choose for each provider class of the table in reference/faults.md. */
export const policies = {
  /** Honours keys for long, also those of errors; look-up. Repeats under the same key until the key's deadline, then looks up. */
  a: {
    ...common,
    on_unknown: ['same_key_retry', 'lookup', 'review'],
    same_key: { by: 'key', retention_ms: 24 * HOUR, margin_ms: HOUR, repeats_stored_errors: true },
    lookup,
  },
  /** Honours keys for short and only those of successes; look-up. Looks up before any repetition. */
  b: {
    ...common,
    on_unknown: ['lookup', 'same_key_retry', 'review'],
    same_key: { by: 'key', retention_ms: HOUR, margin_ms: MINUTE, repeats_stored_errors: false },
    lookup,
  },
  /** No keys, consistent look-up. Sends again only what is proven absent. */
  c: { ...common, on_unknown: ['lookup', 'review'], same_key: null, lookup },
  /** No keys, look-up that sees an effect late. "Absent" counts only after the settle window. */
  d: {
    ...common,
    on_unknown: ['lookup', 'review'],
    same_key: null,
    lookup: { ...lookup, consistent: false, visibility_lag_ms: VISIBILITY_LAG_MS },
  },
  /** No keys, no look-up, but rejects a repeated business reference: the rejection of a repetition proves the first one. */
  e: { ...common, on_unknown: ['same_key_retry', 'review'], same_key: { by: 'reference' }, lookup: null },
  /** Nothing: an ambiguous answer goes to a person. */
  f: { ...common, on_unknown: ['review'], same_key: null, lookup: null },
} as const satisfies Record<string, OperationPolicy>;

export type ProviderClass = keyof typeof policies;
export const PROVIDER_CLASSES = Object.keys(policies) as ProviderClass[];
