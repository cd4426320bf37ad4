import type { CheckVerdict, EvidenceKind, OperationEvent, OperationPlanned, OperationPolicy, ReviewDecision } from '#domain';
import { T0, type Dated } from '../../../support/decider-specification.js';
import { LEASE_MS, policies } from './policies.js';

/** The stored form of a time, told in milliseconds after the beginning. */
export function time(afterMs: number): string {
  return new Date(T0 + afterMs).toISOString();
}

/** The refund of public case 1 as it is planned. */
export const plannedData = (policy: OperationPolicy = policies.d): OperationPlanned['data'] => ({
  operation_id: `op_${'1'.repeat(32)}`,
  idempotency_key: `v1:${'1'.repeat(64)}`,
  action_type: 'refund.create',
  identity: { workflow_id: 'case-1842', step: 'issue_refund', business_object: 'order-4417', revision: 1 },
  payload_hash: `hs256-v1:${'a'.repeat(64)}`,
  payload: 'sealed-payload',
  provider: 'payments',
  provider_key: '6ba7b810-9dad-51d1-80b4-00c04fd430c8',
  policy,
  source: null,
  client_key: null,
});

export const planned = (policy?: OperationPolicy): Dated => [0, { type: 'OperationPlanned', data: plannedData(policy) }];

export const started = (afterMs: number, attempt = 1, safeRetryUntilMs: number | null = null): Dated => [
  afterMs,
  {
    type: 'AttemptStarted',
    data: {
      attempt,
      attempt_id: `attempt-${attempt}`,
      worker: 'w0',
      lease_seconds: LEASE_MS / 1000,
      lease_until: time(afterMs + LEASE_MS),
      safe_retry_until: safeRetryUntilMs === null ? null : time(safeRetryUntilMs),
    },
  },
];

export const notSent = (afterMs: number, attempt = 1, { code = 'http_429', reached = true, retryMs = afterMs + 1000 } = {}): Dated => [
  afterMs,
  { type: 'AttemptNotSent', data: { attempt, code, reached, retry_at: time(retryMs) } },
];

export const unknown = (
  afterMs: number,
  attempt = 1,
  { code = 'timeout', status = null as number | null, checkMs = (afterMs + 1000) as number | null } = {},
): Dated => [afterMs, { type: 'OutcomeUnknown', data: { attempt, code, status, next_check_at: checkMs === null ? null : time(checkMs) } }];

export const checked = (
  afterMs: number,
  verdict: CheckVerdict,
  { proof = false, anomaly = null as string | null, nextMs = afterMs as number | null } = {},
): Dated => [
  afterMs,
  { type: 'OutcomeChecked', data: { verdict, proof, code: null, anomaly, next_check_at: nextMs === null ? null : time(nextMs) } },
];

export const succeeded = (afterMs: number, attempt = 1, id: string | null = 're_1', evidence: EvidenceKind = 'response'): Dated => [
  afterMs,
  {
    type: 'OperationSucceeded',
    data: { attempt, provider_operation_id: id, result: 'sealed-result', response_digest: 'digest', evidence },
  },
];

export const failed = (afterMs: number, attempt = 1, code = 'http_402', evidence: EvidenceKind = 'response'): Dated => [
  afterMs,
  { type: 'OperationFailed', data: { attempt, code, reason: 'The provider refused with status 402.', evidence } },
];

export const reviewRequested = (afterMs: number, reason = 'no_lookup'): Dated => [afterMs, { type: 'ReviewRequested', data: { reason } }];

export const reviewDecided = (afterMs: number, decision: ReviewDecision, decisionId: string | null = 'd-1'): Dated => [
  afterMs,
  {
    type: 'ReviewDecided',
    data: { decision, decision_id: decisionId, actor: 'operator-1', reason: 'looked it up', evidence: null, based_on_revision: 3 },
  },
];

export const evidence = (
  afterMs: number,
  attempt: number,
  data: Partial<Extract<OperationEvent, { type: 'EvidenceRecorded' }>['data']>,
): Dated => [
  afterMs,
  {
    type: 'EvidenceRecorded',
    data: { attempt, kind: 'late_response', verdict: 'succeeded', code: null, provider_operation_id: 're_1', contradicts: false, ...data },
  },
];

export const cancelled = (afterMs: number): Dated => [afterMs, { type: 'OperationCancelled', data: { reason: 'no longer wanted' } }];
