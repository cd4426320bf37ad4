import type { OperationPolicy } from '#domain';
import { readBackoff } from './read-backoff.js';
import type { ReadProvider } from './read-provider.js';
import type { Section } from './section.js';
import type { LoadedAction } from './settings.js';

type WayOut = OperationPolicy['on_unknown'][number];

const WAYS_OUT: readonly WayOut[] = ['lookup', 'same_key_retry', 'review'];
const INITIAL_WAYS_OUT: Readonly<Record<LoadedAction['risk'], readonly WayOut[]>> = {
  irreversible: ['lookup', 'review'],
  reversible: ['lookup', 'same_key_retry', 'review'],
};

const ATTEMPTS_INITIAL = 6;
/** The core remembers the evidence of 16 attempts of one operation. */
const ATTEMPTS_MAX = 15;
const BACKOFF_INITIAL = { initialMs: 1_000, factor: 2, maxMs: 300_000 };

/** The numbers that each operation of the action takes with it. */
export function readPolicy(section: Section, risk: LoadedAction['risk'], provider: ReadProvider): OperationPolicy {
  const attempts = section.section('attempts');
  const maxAttempts = attempts?.number('max', ATTEMPTS_INITIAL, { min: 1, max: ATTEMPTS_MAX }) ?? ATTEMPTS_INITIAL;
  const backoff = attempts
    ? readBackoff(attempts, BACKOFF_INITIAL)
    : { initial_ms: BACKOFF_INITIAL.initialMs, factor: BACKOFF_INITIAL.factor, max_ms: BACKOFF_INITIAL.maxMs };
  attempts?.end();
  return {
    max_attempts: maxAttempts,
    backoff,
    lease_ms: provider.leaseMs,
    on_unknown: readWaysOut(section, risk, provider),
    same_key: provider.sameKey,
    lookup: provider.lookup,
  };
}

function readWaysOut(section: Section, risk: LoadedAction['risk'], provider: ReadProvider): readonly WayOut[] {
  const written = section.list('on_unknown');
  if (written === null) return INITIAL_WAYS_OUT[risk].filter((way) => whyImpossible(way, provider) === null);
  const unknown = written.filter((way) => !WAYS_OUT.includes(way as WayOut));
  if (unknown.length > 0) {
    section.fault('on_unknown', 'Has a way out that is not known.', `Known: ${WAYS_OUT.join(', ')}.`);
    return ['review'];
  }
  const ways = written as readonly WayOut[];
  if (new Set(ways).size !== ways.length)
    section.fault('on_unknown', 'Has a way out twice.', 'Keep one of the two; how often it is tried is set elsewhere.');
  if (ways.at(-1) !== 'review')
    section.fault('on_unknown', 'Must end with review.', 'Append review: when nothing else tells the outcome, a person has to.');
  for (const way of new Set(ways)) {
    const why = whyImpossible(way, provider);
    if (why) section.fault('on_unknown', why.rule, why.wayOut);
  }
  return ways;
}

function whyImpossible(way: WayOut, { lookup, sameKey }: ReadProvider): { rule: string; wayOut: string } | null {
  if (way === 'lookup' && lookup === null) {
    return { rule: 'Has lookup, but the provider declares none.', wayOut: 'Declare lookup for the provider, or remove it here.' };
  }
  if (way === 'same_key_retry' && sameKey === null) {
    return {
      rule: 'Has same_key_retry, but the provider neither honours keys nor rejects a repeated reference, so a retry could cause a second effect.',
      wayOut: 'Declare idempotency or outcomes.already_done for the provider, or remove it here.',
    };
  }
  return null;
}
