import type {
  EvidenceKind,
  Identity,
  OperationEvent,
  OperationFailed,
  OperationPlanned,
  OperationPolicy,
  ReviewDecision,
  Sealed,
  Source,
} from './events.js';

/**
 * What is known of an operation: exactly six situations, and `absent` before the first event. Plain JSON, times in epoch
 * milliseconds. The sealed payload is deliberately not part of it: only the caller of the provider needs it.
 */
export type OperationState = { readonly status: 'absent' } | KnownOperation;
export type KnownOperation = Planned | Executing | FailedRetryable | Unknown | Succeeded | FailedFinal;
export type OperationStatus = KnownOperation['status'];

export const OPERATION_STATUSES = ['planned', 'executing', 'succeeded', 'failed_retryable', 'failed_final', 'unknown'] as const;

interface Common {
  readonly facts: OperationFacts;
  /** Revision of the last event folded in. */
  readonly revision: number;
  readonly updatedAtMs: number;
  readonly history: AttemptHistory;
  readonly review: OpenReview | null;
  readonly lastDecision: ReviewVerdict | null;
}

export interface Planned extends Common {
  readonly status: 'planned';
}
export interface Executing extends Common {
  readonly status: 'executing';
  readonly attemptId: string;
  readonly worker: string;
  readonly leaseUntilMs: number;
}
export interface FailedRetryable extends Common {
  readonly status: 'failed_retryable';
  readonly retryAtMs: number;
}
export interface Unknown extends Common {
  readonly status: 'unknown';
  /** Look-ups made since the last attempt. */
  readonly checks: number;
  /** When the last of them was recorded: an answer to an older question that found nothing adds nothing. */
  readonly checkedAtMs: number | null;
  readonly nextCheckAtMs: number | null;
  readonly checkRequested: boolean;
  readonly absenceProven: boolean;
  readonly anomaly: string | null;
  /** A person granted one more send with the same key. */
  readonly retryGranted: boolean;
}
export interface Succeeded extends Common {
  readonly status: 'succeeded';
  readonly providerOperationId: string | null;
  readonly result: Sealed | null;
  readonly evidence: EvidenceKind;
}
export interface FailedFinal extends Common {
  readonly status: 'failed_final';
  readonly code: string;
  readonly reason: string;
  readonly evidence: EvidenceKind;
}

/** What the first event settled for good. */
export interface OperationFacts {
  readonly operationId: string;
  readonly idempotencyKey: string;
  readonly tenant: string;
  readonly actionType: string;
  readonly identity: Identity;
  readonly payloadHash: string;
  readonly provider: string;
  readonly providerKey: string;
  readonly policy: OperationPolicy;
  readonly source: Source | null;
  readonly createdAtMs: number;
}

/** What the attempts so far mean for the next decision. */
export interface AttemptHistory {
  /** Attempts started. The number of the last one is the fencing token. */
  readonly count: number;
  /** Attempts whose request may have taken effect, with nothing to disprove it yet. */
  readonly unresolved: readonly number[];
  /** Attempts that the provider answered with a server error (5xx): whether it keeps that under our key is its declaration. */
  readonly serverErrors: readonly number[];
  /** Whether any send was ever ambiguous, also if disproved since. */
  readonly everAmbiguous: boolean;
  /** First send after which the provider may know our key: its retention counts from here. */
  readonly keySeen: { readonly attempt: number; readonly atMs: number } | null;
  readonly safeRetryUntilMs: number | null;
  /** No request of ours can have left after this moment. */
  readonly lastPossibleSendMs: number;
  readonly lastError: { readonly attempt: number; readonly code: string; readonly status: number | null } | null;
  /** The effect was seen while the operation could not be settled by it, for example because a newer attempt was under way. */
  readonly provenEffect: ProvenEffect | null;
  /** Evidence already recorded, so that its repetition changes nothing; the last 16, which is more than a policy has attempts. */
  readonly evidenceSeen: readonly string[];
}

export interface ProvenEffect {
  readonly attempt: number;
  readonly providerOperationId: string | null;
  readonly evidence: EvidenceKind;
}

export interface OpenReview {
  readonly reason: string;
  readonly requestedAtMs: number;
}

export interface ReviewVerdict {
  readonly decision: ReviewDecision;
  readonly decisionId: string | null;
  readonly actor: string;
  readonly reason: string;
  readonly decidedAtMs: number;
}

/** What the fold needs to know of a stored event besides its type and data. */
export interface EventContext {
  readonly tenant: string;
  readonly atMs: number;
  readonly revision: number;
}

export const initialState: OperationState = { status: 'absent' };

const NO_ATTEMPTS: AttemptHistory = {
  count: 0,
  unresolved: [],
  serverErrors: [],
  everAmbiguous: false,
  keySeen: null,
  safeRetryUntilMs: null,
  lastPossibleSendMs: 0,
  lastError: null,
  provenEffect: null,
  evidenceSeen: [],
};

/** Folds one event in. Total and silent: it never throws, judges or looks at a clock; an unknown type adds no knowledge. */
export function evolve(state: OperationState, event: OperationEvent, context: EventContext): OperationState {
  if (state.status === 'absent') return event.type === 'OperationPlanned' ? planned(event, context) : state;
  const common = { ...commonOf(state), revision: context.revision, updatedAtMs: context.atMs };
  switch (event.type) {
    case 'OperationCancelled':
      return failed(common, { code: 'cancelled', reason: event.data.reason, evidence: 'person' });
    case 'AttemptStarted': {
      const { attempt, attempt_id, worker, lease_until, safe_retry_until } = event.data;
      const leaseUntilMs = Date.parse(lease_until);
      const history: AttemptHistory = {
        ...common.history,
        count: attempt,
        keySeen: common.history.keySeen ?? { attempt, atMs: context.atMs },
        safeRetryUntilMs: timeOrNull(safe_retry_until),
        lastPossibleSendMs: leaseUntilMs,
      };
      return { ...common, status: 'executing', history, attemptId: attempt_id, worker, leaseUntilMs };
    }
    case 'AttemptNotSent':
      return notSent(common, event.data, context);
    case 'OutcomeUnknown':
      return becameUnknown(common, event.data, context);
    case 'CheckRequested':
      return state.status === 'unknown' ? { ...state, ...common, checkRequested: true } : { ...state, ...common };
    case 'OutcomeChecked': {
      if (state.status !== 'unknown') return { ...state, ...common };
      const { proof, anomaly, next_check_at, verdict } = event.data;
      const absenceProven = verdict === 'absent' && proof;
      return {
        ...state,
        ...common,
        history: absenceProven ? { ...common.history, unresolved: [] } : common.history,
        checks: state.checks + 1,
        checkedAtMs: context.atMs,
        nextCheckAtMs: timeOrNull(next_check_at),
        checkRequested: false,
        absenceProven,
        anomaly,
      };
    }
    case 'OperationSucceeded': {
      const { provider_operation_id: providerOperationId, result, evidence } = event.data;
      return { ...common, review: null, status: 'succeeded', providerOperationId, result, evidence };
    }
    case 'OperationFailed':
      return failed(common, event.data);
    case 'ReviewRequested':
      return { ...state, ...common, review: { reason: event.data.reason, requestedAtMs: context.atMs } };
    case 'ReviewDecided': {
      const { decision, decision_id: decisionId, actor, reason } = event.data;
      const settled = { ...common, review: null, lastDecision: { decision, decisionId, actor, reason, decidedAtMs: context.atMs } };
      return state.status === 'unknown' ? { ...state, ...settled, retryGranted: decision === 'retry_once' } : { ...state, ...settled };
    }
    case 'EvidenceRecorded': {
      const { attempt, verdict, kind, provider_operation_id: providerOperationId } = event.data;
      const { unresolved, provenEffect } = common.history;
      const disproved = verdict === 'failed' || verdict === 'not_sent';
      const history: AttemptHistory = {
        ...common.history,
        unresolved: disproved ? unresolved.filter((other) => other !== attempt) : unresolved,
        provenEffect: verdict === 'succeeded' ? { attempt, providerOperationId, evidence: kind } : provenEffect,
        evidenceSeen: [...common.history.evidenceSeen, evidenceKey(event.data)].slice(-16),
      };
      return { ...state, ...common, history };
    }
    case 'OperationPlanned':
    default:
      // Adds no knowledge, but the stream is longer by one: the next append must expect it.
      return { ...(state as KnownOperation), ...common };
  }
}

/** Names one piece of evidence, so that the same piece arriving again is recognised. */
export function evidenceKey(of: { attempt: number; verdict: string; provider_operation_id: string | null; code: string | null }): string {
  return `${of.attempt}:${of.verdict}:${of.provider_operation_id ?? of.code ?? ''}`;
}

function planned(event: OperationPlanned, context: EventContext): Planned {
  const { data } = event;
  const facts: OperationFacts = {
    operationId: data.operation_id,
    idempotencyKey: data.idempotency_key,
    tenant: context.tenant,
    actionType: data.action_type,
    identity: data.identity,
    payloadHash: data.payload_hash,
    provider: data.provider,
    providerKey: data.provider_key,
    policy: data.policy,
    source: data.source,
    createdAtMs: context.atMs,
  };
  return {
    status: 'planned',
    facts,
    revision: context.revision,
    updatedAtMs: context.atMs,
    history: NO_ATTEMPTS,
    review: null,
    lastDecision: null,
  };
}

function notSent(
  common: Common,
  data: { attempt: number; code: string; reached: boolean; retry_at: string },
  context: EventContext,
): KnownOperation {
  const { attempt, code, reached, retry_at } = data;
  const seenOnlyByThis = common.history.keySeen?.attempt === attempt;
  const history: AttemptHistory = {
    ...common.history,
    unresolved: common.history.unresolved.filter((earlier) => earlier !== attempt),
    // A request that never left has not started the provider's key retention.
    keySeen: seenOnlyByThis && !reached ? null : common.history.keySeen,
    safeRetryUntilMs: seenOnlyByThis && !reached ? null : common.history.safeRetryUntilMs,
    lastPossibleSendMs: Math.min(common.history.lastPossibleSendMs, context.atMs),
    lastError: { attempt, code, status: null },
  };
  const retryAtMs = Date.parse(retry_at);
  // With an earlier send still in doubt, "nothing happened" would be a claim that nobody can make.
  return history.unresolved.length > 0
    ? unknownSince({ ...common, history }, retryAtMs)
    : // Nothing is in doubt any more, so that a review of the doubt has nothing left to decide.
      { ...common, review: null, status: 'failed_retryable', history, retryAtMs };
}

/** The window of the provider's key has passed: a doubt about the key, not about a send. */
export const KEY_RETENTION_PASSED = 'key_retention_passed';
/** The worker vanished: the request may leave until the lease ends, so that moment stays the last possible send. */
export const LEASE_EXPIRED = 'lease_expired';

function becameUnknown(
  common: Common,
  data: { attempt: number; code: string; status: number | null; next_check_at: string | null },
  context: EventContext,
): Unknown {
  const { attempt, code, status, next_check_at } = data;
  const ambiguous = code !== KEY_RETENTION_PASSED;
  const { unresolved, serverErrors, everAmbiguous, lastPossibleSendMs } = common.history;
  const isServerError = status !== null && status >= 500 && status <= 599;
  const history: AttemptHistory = {
    ...common.history,
    unresolved: ambiguous && !unresolved.includes(attempt) ? [...unresolved, attempt] : unresolved,
    serverErrors: isServerError && !serverErrors.includes(attempt) ? [...serverErrors, attempt] : serverErrors,
    everAmbiguous: everAmbiguous || ambiguous,
    // The worker's own word: it had sent before it spoke, be that before or after its lease ended.
    lastPossibleSendMs: ambiguous && code !== LEASE_EXPIRED ? context.atMs : lastPossibleSendMs,
    lastError: { attempt, code, status },
  };
  return unknownSince({ ...common, history }, timeOrNull(next_check_at));
}

function unknownSince(common: Common, nextCheckAtMs: number | null): Unknown {
  return {
    ...common,
    status: 'unknown',
    checks: 0,
    checkedAtMs: null,
    nextCheckAtMs,
    checkRequested: false,
    absenceProven: false,
    anomaly: null,
    retryGranted: false,
  };
}

function failed(common: Common, { code, reason, evidence }: Pick<OperationFailed['data'], 'code' | 'reason' | 'evidence'>): FailedFinal {
  return { ...common, review: null, status: 'failed_final', code, reason, evidence };
}

function commonOf({ facts, revision, updatedAtMs, history, review, lastDecision }: KnownOperation): Common {
  return { facts, revision, updatedAtMs, history, review, lastDecision };
}

function timeOrNull(time: string | null): number | null {
  return time === null ? null : Date.parse(time);
}
