import fc, { type Arbitrary } from 'fast-check';
import {
  decide,
  foldDecided,
  initialState,
  REVIEW_DECISIONS,
  type AttemptOutcome,
  type CheckOutcome,
  type Decision,
  type OperationCommand,
  type OperationEvent,
  type OperationPolicy,
  type OperationState,
} from '#domain';
import { T0 } from '../../../support/decider-specification.js';
import { decideReview, plan } from './commands.js';
import { plannedData } from './events.js';
import { HOUR, LEASE_MS, policies, PROVIDER_CLASSES } from './policies.js';

const id = fc.constantFrom('re_1', 're_2', null);
const code = fc.constantFrom('timeout', 'http_402', 'http_429', 'server_error', 'already_done_at_first_attempt', 'lease_expired');
const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

export const anyOutcome: Arbitrary<AttemptOutcome> = fc.oneof(
  fc.record({
    kind: fc.constant('succeeded' as const),
    providerOperationId: id,
    result: fc.constant(null),
    responseDigest: fc.constant(null),
  }),
  fc.record({ kind: fc.constant('failed' as const), code: fc.constantFrom('http_402', 'http_422'), reason: fc.constant('refused') }),
  fc.record({
    kind: fc.constant('not_sent' as const),
    code: fc.constantFrom('connection_refused', 'http_429'),
    reached: fc.boolean(),
    retryAfterMs: fc.option(fc.integer({ min: 0, max: HOUR })),
  }),
  fc.constant({ kind: 'already_done' as const }),
  {
    // Doubts are what most laws are about.
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('unknown' as const),
      code: fc.constantFrom('timeout', 'reset'),
      status: fc.constantFrom(null, 500, 502),
    }),
  },
);

export const anyCheck: Arbitrary<CheckOutcome> = fc.record({
  verdict: fc.constantFrom('present', 'refused', 'absent', 'absent', 'absent', 'inconclusive', 'inconclusive'),
  code: fc.constantFrom(null, 'http_500'),
  anomaly: fc.oneof({ weight: 6, arbitrary: fc.constant(null) }, fc.constantFrom('two_matches' as const, 'other_amount' as const)),
  providerOperationId: id,
  result: fc.constant(null),
});

/** A policy as a provider class calls for it, or one that declares less. */
export const anyPolicy: Arbitrary<OperationPolicy> = fc
  .record({
    policy: fc.constantFrom(...PROVIDER_CLASSES.map((name): OperationPolicy => policies[name])),
    max_attempts: fc.integer({ min: 1, max: 4 }),
    max_checks: fc.integer({ min: 1, max: 4 }),
    withoutLookup: fc.boolean(),
    retention_ms: fc.constantFrom(LEASE_MS, HOUR),
  })
  .map(({ policy, max_attempts, max_checks, withoutLookup, retention_ms }) => ({
    ...policy,
    max_attempts,
    same_key: policy.same_key?.by === 'key' ? { ...policy.same_key, retention_ms, margin_ms: 1000 } : policy.same_key,
    lookup: withoutLookup || !policy.lookup ? null : { ...policy.lookup, max_checks },
  }));

/** A command, made to fit the state that it meets (the attempts there are, the revision at hand or near it). */
type Ask = (state: OperationState, nowMs: number) => OperationCommand;

const pick = (attempt: number, count: number) => 1 + (attempt % Math.max(1, count));
const countOf = (state: OperationState) => (state.status === 'absent' ? 0 : state.history.count);

const anyAsk = (policy: OperationPolicy): Arbitrary<Ask> =>
  fc.oneof(
    {
      weight: 1,
      arbitrary: fc.constantFrom<Ask>(
        () => plan(policy),
        () => ({ type: 'CancelOperation', reason: 'not wanted' }),
      ),
    },
    { weight: 6, arbitrary: fc.constant<Ask>(() => ({ type: 'StartAttempt', attemptId: 'a', worker: 'w0' })) },
    { weight: 4, arbitrary: fc.constant<Ask>(() => ({ type: 'Conclude' })) },
    { weight: 1, arbitrary: fc.constant<Ask>(() => ({ type: 'RequestCheck', reason: null })) },
    {
      weight: 8,
      arbitrary: fc.tuple(fc.nat(3), anyOutcome, jitter).map(([attempt, outcome, chance]): Ask => {
        return (state) => ({ type: 'RecordOutcome', attempt: pick(attempt, countOf(state)), outcome, jitter: chance });
      }),
    },
    {
      weight: 5,
      arbitrary: fc.tuple(fc.constantFrom(0, 1, 50, LEASE_MS), anyCheck, jitter).map(([agoMs, check, chance]): Ask => {
        return (_, nowMs) => ({ type: 'RecordCheck', askedAtMs: nowMs - agoMs, doubtAgeMs: agoMs * 100, check, jitter: chance });
      }),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.constantFrom(...REVIEW_DECISIONS), fc.constantFrom(null, 'd-1', 'd-2'), fc.boolean())
        .map(([decision, decisionId, stale]): Ask => {
          return (state) =>
            decideReview({ decision, decisionId, expectedRevision: (state.status === 'absent' ? 0 : state.revision) - (stale ? 1 : 0) });
        }),
    },
  );

/** One step of a history: a command, and how much later than the last one. */
interface Move {
  readonly laterMs: number;
  readonly ask: Ask;
}

/** A policy, and what is asked of an operation under it. */
export const anyHistory: Arbitrary<{ policy: OperationPolicy; moves: Move[] }> = anyPolicy.chain((policy) =>
  fc.record({
    policy: fc.constant(policy),
    moves: fc.array(
      fc.record({
        laterMs: fc.oneof(fc.constantFrom(0, 1, 999, 1000, LEASE_MS, LEASE_MS + 1, HOUR), fc.integer({ min: 0, max: 100_000 })),
        ask: anyAsk(policy),
      }),
      { minLength: 1, maxLength: 25, size: 'max' },
    ),
  }),
);

export interface Moment {
  readonly before: OperationState;
  readonly command: OperationCommand;
  readonly nowMs: number;
  readonly decision: Decision;
  readonly after: OperationState;
}

/** Lives a history through, from the plan on. */
export function live({ policy, moves }: { policy: OperationPolicy; moves: readonly Move[] }): Moment[] {
  let state: OperationState = initialState;
  let nowMs = T0;
  return [{ laterMs: 0, ask: () => plan(policy) }, ...moves].map(({ laterMs, ask }) => {
    nowMs += laterMs;
    const before = state;
    const command = ask(before, nowMs);
    const decision = decide(before, command, nowMs);
    if (!decision.refusal) state = foldDecided(before, decision.events, nowMs, 't1');
    return { before, command, nowMs, decision, after: state };
  });
}

const at = fc.integer({ min: T0, max: T0 + 100 * HOUR }).map((ms) => new Date(ms).toISOString());
const maybeAt = fc.option(at);
const attempt = fc.integer({ min: 0, max: 5 });
const verdict = fc.constantFrom('succeeded', 'failed', 'not_sent', 'unknown');
const evidenceKind = fc.constantFrom('response', 'late_response', 'already_done', 'lookup', 'webhook', 'person', 'budget');

const dataOf: Record<OperationEvent['type'], Arbitrary<unknown>> = {
  OperationPlanned: anyPolicy.map((policy) => plannedData(policy)),
  OperationCancelled: fc.record({ reason: fc.string() }),
  AttemptStarted: fc.record({
    attempt,
    attempt_id: fc.string(),
    worker: fc.string(),
    lease_seconds: fc.constant(10),
    lease_until: at,
    safe_retry_until: maybeAt,
  }),
  AttemptNotSent: fc.record({ attempt, code, reached: fc.boolean(), retry_at: at }),
  OutcomeUnknown: fc.record({
    attempt,
    code: fc.oneof(code, fc.constant('key_retention_passed')),
    status: fc.constantFrom(null, 500),
    next_check_at: maybeAt,
  }),
  CheckRequested: fc.record({ reason: fc.option(fc.string()) }),
  OutcomeChecked: fc.record({
    verdict: fc.constantFrom('present', 'absent', 'refused', 'inconclusive'),
    proof: fc.boolean(),
    code: fc.option(code),
    anomaly: fc.constantFrom(null, 'two_matches'),
    next_check_at: maybeAt,
  }),
  OperationSucceeded: fc.record({
    attempt,
    provider_operation_id: id,
    result: fc.option(fc.string()),
    response_digest: fc.option(fc.string()),
    evidence: evidenceKind,
  }),
  OperationFailed: fc.record({ attempt, code, reason: fc.string(), evidence: evidenceKind }),
  ReviewRequested: fc.record({ reason: fc.string() }),
  ReviewDecided: fc.record({
    decision: fc.constantFrom(...REVIEW_DECISIONS),
    decision_id: fc.option(fc.string()),
    actor: fc.string(),
    reason: fc.string(),
    evidence: fc.option(fc.string()),
    based_on_revision: fc.nat(),
  }),
  EvidenceRecorded: fc.record({
    attempt,
    kind: evidenceKind,
    verdict,
    code: fc.option(code),
    provider_operation_id: id,
    contradicts: fc.boolean(),
  }),
};

/** Any event at all, of any type that there is or may once be, with data of its shape (of any shape, where the type is unknown). */
export const anyEvent: Arbitrary<OperationEvent> = fc.oneof(
  ...Object.entries(dataOf).map(([type, data]) => fc.record({ type: fc.constant(type), data })),
  fc.record({ type: fc.constantFrom('OperationReleased', 'SomethingNewer', '__proto__', ''), data: fc.anything() }),
) as Arbitrary<OperationEvent>;
