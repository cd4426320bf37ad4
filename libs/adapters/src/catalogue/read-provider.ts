import type { BreakerSettings, LookupPolicy, OperationPolicy, ProviderDefinition } from '#domain';
import { readHttpProvider } from './read-http-provider.js';
import { readSmtpProvider } from './read-smtp-provider.js';
import type { Section } from './section.js';
import type { ProviderSettings } from './settings.js';

/** A provider, and the part of it that becomes the policy of each operation that goes to it. */
export interface ReadProvider {
  readonly settings: ProviderSettings;
  readonly leaseMs: number;
  readonly sameKey: OperationPolicy['same_key'];
  readonly lookup: LookupPolicy | null;
}

export type CommonSettings = Omit<ProviderDefinition, 'kind'>;

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

export const TIMEOUT_INITIAL_MS = 10 * SECOND_MS;
export const LEASE_INITIAL_MS = 30 * SECOND_MS;
/** What is left of a lease after the call's own deadline: time to append the outcome before somebody else may look into it. */
export const LEASE_MARGIN_MS = SECOND_MS;
const CONCURRENCY_INITIAL = 20;

const NAME = /^[a-z][a-z0-9_-]{0,63}$/;

/** Reads one provider. Null where not even its kind is readable. */
export function readProvider(name: string, section: Section): ReadProvider | null {
  if (!NAME.test(name)) {
    section.faults.add(section.path, 'The name is not allowed.', 'Use up to 64 of a-z, 0-9, _ and -, a letter first.');
  }
  const kind = section.word('kind', ['http', 'smtp'], 'http');
  if (!section.has('kind')) section.fault('kind', 'Is required.', 'Write kind: http or kind: smtp.');
  section.notAvailable('webhook');
  const timeoutMs = section.duration('timeout', TIMEOUT_INITIAL_MS, { min: 1, max: 10 * MINUTE_MS });
  const leaseMs = readLease(section, timeoutMs);
  const limits = readLimits(section);
  const hasLookup = kind === 'http' && section.has('lookup') && section.value('lookup') !== 'none';
  const common: CommonSettings = { name, timeoutMs, limits, breaker: readBreaker(section, hasLookup) };
  const provider =
    kind === 'http'
      ? { ...readHttpProvider(section, common, leaseMs), leaseMs }
      : { settings: readSmtpProvider(section, common), leaseMs, sameKey: null, lookup: null };
  section.end();
  return provider;
}

function readLease(section: Section, timeoutMs: number): number {
  const leaseMs = section.duration('lease', LEASE_INITIAL_MS, { min: SECOND_MS, max: HOUR_MS });
  if (leaseMs < timeoutMs + LEASE_MARGIN_MS) {
    const where = section.has('lease') ? 'lease' : 'timeout';
    section.fault(
      where,
      'The lease must be at least 1s longer than the timeout.',
      'Shorten timeout or lengthen lease (30s where it is not written).',
    );
  }
  return leaseMs;
}

function readLimits(section: Section): ProviderDefinition['limits'] {
  const limits = section.section('limits');
  if (!limits) return { concurrency: CONCURRENCY_INITIAL, perSecond: null };
  const concurrency = limits.number('concurrency', CONCURRENCY_INITIAL, { min: 1, max: 1_000 });
  const perSecond = limits.number('per_second', null, { min: 1, max: 100_000 });
  limits.end();
  return { concurrency, perSecond };
}

function readBreaker(section: Section, hasLookup: boolean): BreakerSettings | null {
  const breaker = section.sectionOrNone('breaker');
  if (!breaker) return null;
  const failures = breaker.number('failures', 10, { min: 1, max: 1_000 });
  const windowMs = breaker.duration('window', 30 * SECOND_MS, { min: SECOND_MS, max: HOUR_MS });
  const halfOpen = breaker.word('half_open', ['lookup', 'attempt'], hasLookup ? 'lookup' : 'attempt');
  if (halfOpen === 'lookup' && !hasLookup)
    breaker.fault('half_open', 'The provider has no look-up.', 'Declare lookup, or write half_open: attempt.');
  breaker.end();
  return { failures, windowMs, halfOpen };
}
