import type { AttemptOutcome, CheckOutcome, DecideReview, OperationCommand, OperationPolicy, RecordCheck, RecordOutcome } from '#domain';
import { T0 } from '../../../support/decider-specification.js';
import { plannedData } from './events.js';

export const plan = (policy?: OperationPolicy): OperationCommand => {
  const data = plannedData(policy);
  return { type: 'PlanOperation', planned: data, payloadHashes: [data.payload_hash] };
};

export const startAttempt: OperationCommand = { type: 'StartAttempt', attemptId: 'a-new', worker: 'w0' };
export const conclude: OperationCommand = { type: 'Conclude' };
export const cancel: OperationCommand = { type: 'CancelOperation', reason: 'no longer wanted' };
export const requestCheck: OperationCommand = { type: 'RequestCheck', reason: 'the customer calls' };

export const record = (attempt: number, outcome: AttemptOutcome, jitter = 0.5): RecordOutcome => ({
  type: 'RecordOutcome',
  attempt,
  outcome,
  jitter,
});

/** What an attempt may tell. */
export const told = {
  success: (providerOperationId: string | null = 're_1'): AttemptOutcome => ({
    kind: 'succeeded',
    providerOperationId,
    result: 'sealed-result',
    responseDigest: 'digest',
  }),
  refusal: { kind: 'failed', code: 'http_402', reason: 'The provider refused with status 402.' },
  notReached: { kind: 'not_sent', code: 'connection_refused', reached: false, retryAfterMs: null },
  tooMany: { kind: 'not_sent', code: 'http_429', reached: true, retryAfterMs: null },
  alreadyDone: { kind: 'already_done' },
  timeout: { kind: 'unknown', code: 'timeout', status: null },
  serverError: { kind: 'unknown', code: 'server_error', status: 500 },
} as const satisfies Record<string, AttemptOutcome | ((id: string | null) => AttemptOutcome)>;

export const recordCheck = (askedAfterMs: number, check: Partial<CheckOutcome>, jitter = 0.5): RecordCheck => ({
  type: 'RecordCheck',
  askedAtMs: T0 + askedAfterMs,
  doubtAgeMs: askedAfterMs,
  check: { verdict: 'inconclusive', code: null, anomaly: null, providerOperationId: null, result: null, ...check },
  jitter,
});

export const present = { verdict: 'present', providerOperationId: 're_1', result: 'sealed-result' } as const;
export const absent = { verdict: 'absent' } as const;
export const refused = { verdict: 'refused', code: 'declined' } as const;
export const inconclusive = { verdict: 'inconclusive', code: 'http_500' } as const;

export const decideReview = (over: Partial<DecideReview>): DecideReview => ({
  type: 'DecideReview',
  decision: 'happened',
  decisionId: 'd-1',
  expectedRevision: 3,
  actor: 'operator-1',
  reason: 'looked it up',
  evidence: 'statement of 5 January',
  providerOperationId: 're_1',
  ...over,
});
