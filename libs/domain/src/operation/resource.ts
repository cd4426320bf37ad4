import type { Identity, Source } from './events.js';
import { guidanceFor, type Guidance } from './guidance.js';
import { timestamp } from './next-step.js';
import type { KnownOperation, OperationStatus } from './state.js';

/** An operation as every interface shows it. */
export interface OperationResource {
  readonly operation_id: string;
  readonly idempotency_key: string;
  readonly tenant: string;
  readonly action_type: string;
  readonly identity: Identity;
  readonly status: OperationStatus;
  /** Why a planned operation waits for a person; approvals are not part of this version, so it is null. */
  readonly hold: null;
  readonly review: { readonly open: boolean; readonly reason: string; readonly decision?: string } | null;
  readonly payload_hash: string;
  readonly attempt_count: number;
  readonly provider: string;
  readonly provider_operation_id: string | null;
  readonly result: unknown;
  /** True where the result's data key has been destroyed: it existed and can't be read any more. */
  readonly result_erased?: true;
  readonly last_error: { readonly code: string; readonly status?: number; readonly reason?: string } | null;
  readonly evidence: string | null;
  readonly lease_until: string | null;
  readonly next_attempt_at: string | null;
  readonly next_check_at: string | null;
  readonly safe_retry_until: string | null;
  readonly source: Source | null;
  readonly revision: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly guidance: Guidance;
}

/** @param result what the provider answered, unsealed; null where there is none; `erased` where its key is destroyed */
export function describeOperation(state: KnownOperation, result: unknown, nowMs: number): OperationResource {
  const { facts, history } = state;
  return {
    operation_id: facts.operationId,
    idempotency_key: facts.idempotencyKey,
    tenant: facts.tenant,
    action_type: facts.actionType,
    identity: facts.identity,
    status: state.status,
    hold: null,
    review: describeReview(state),
    payload_hash: facts.payloadHash,
    attempt_count: history.count,
    provider: facts.provider,
    provider_operation_id: state.status === 'succeeded' ? state.providerOperationId : null,
    ...(result === ERASED ? { result: null, result_erased: true } : { result }),
    last_error: describeError(state),
    evidence: state.status === 'succeeded' || state.status === 'failed_final' ? state.evidence : null,
    lease_until: state.status === 'executing' ? timestamp(state.leaseUntilMs) : null,
    next_attempt_at: state.status === 'failed_retryable' ? timestamp(state.retryAtMs) : null,
    next_check_at: state.status === 'unknown' && state.nextCheckAtMs !== null ? timestamp(state.nextCheckAtMs) : null,
    safe_retry_until: history.safeRetryUntilMs === null ? null : timestamp(history.safeRetryUntilMs),
    source: facts.source,
    revision: state.revision,
    created_at: timestamp(facts.createdAtMs),
    updated_at: timestamp(state.updatedAtMs),
    guidance: guidanceFor(state, nowMs),
  };
}

/** Stands for a sealed value whose key has been destroyed. */
export const ERASED = Symbol('erased');

function describeReview({ review, lastDecision }: KnownOperation): OperationResource['review'] {
  if (review) return { open: true, reason: review.reason };
  return lastDecision ? { open: false, reason: lastDecision.reason, decision: lastDecision.decision } : null;
}

function describeError(state: KnownOperation): OperationResource['last_error'] {
  if (state.status === 'failed_final') return { code: state.code, reason: state.reason };
  if (state.status === 'succeeded' || !state.history.lastError) return null;
  const { code, status } = state.history.lastError;
  return status === null ? { code } : { code, status };
}
