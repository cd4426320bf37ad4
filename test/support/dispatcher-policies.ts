import type { OperationPolicy } from '#domain';
import type { ProviderClass } from './dispatcher-provider.js';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

const lookup = {
  consistent: true,
  visibility_lag_ms: 0,
  landing_ms: 0,
  first_check_ms: 1,
  max_checks: 4,
  backoff: { initial_ms: 10, factor: 2, max_ms: 100 },
};
const common = { max_attempts: 3, backoff: { initial_ms: 10, factor: 2, max_ms: 100 }, lease_ms: 10 * SECOND };

/** What the fault catalogue asks of each provider class, in times that a test can wait for. */
export const POLICIES = {
  a: {
    ...common,
    on_unknown: ['same_key_retry', 'lookup', 'review'],
    same_key: { by: 'key', retention_ms: 24 * HOUR, margin_ms: HOUR, repeats_stored_errors: true },
    lookup,
  },
  b: {
    ...common,
    on_unknown: ['lookup', 'same_key_retry', 'review'],
    same_key: { by: 'key', retention_ms: HOUR, margin_ms: 60 * SECOND, repeats_stored_errors: false },
    lookup,
  },
  c: { ...common, on_unknown: ['lookup', 'review'], same_key: null, lookup },
  d: { ...common, on_unknown: ['lookup', 'review'], same_key: null, lookup: { ...lookup, consistent: false, visibility_lag_ms: SECOND } },
  e: { ...common, on_unknown: ['same_key_retry', 'review'], same_key: { by: 'reference' }, lookup: null },
  f: { ...common, on_unknown: ['review'], same_key: null, lookup: null },
} as const satisfies Record<ProviderClass, OperationPolicy>;
