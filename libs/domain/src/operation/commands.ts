import type { AttemptOutcome, CheckOutcome } from '../outcome/attempt-outcome.js';
import type { OperationEvent, OperationPlanned, ReviewDecision } from './events.js';
import type { ReviewVerdict } from './state.js';

/** What somebody wants done with one operation. Time (`nowMs`, the database's), chance (`jitter` in [0, 1)) and ids are handed in. */
export type OperationCommand =
  | PlanOperation
  | { readonly type: 'CancelOperation'; readonly reason: string }
  | { readonly type: 'StartAttempt'; readonly attemptId: string; readonly worker: string }
  | RecordOutcome
  | RecordCheck
  | { readonly type: 'RequestCheck'; readonly reason: string | null }
  | DecideReview
  /** Records what follows from the state and the time alone: an expired lease, a spent budget, a review that is due. */
  | { readonly type: 'Conclude' };

export interface PlanOperation {
  readonly type: 'PlanOperation';
  readonly planned: OperationPlanned['data'];
  /** The payload's hash under every secret version in force; an earlier version may have made the stored one. */
  readonly payloadHashes: readonly string[];
}

export interface RecordOutcome {
  readonly type: 'RecordOutcome';
  readonly attempt: number;
  readonly outcome: AttemptOutcome;
  readonly jitter: number;
}

export interface RecordCheck {
  readonly type: 'RecordCheck';
  /** When the provider was asked: only what was sent long enough before can be proven absent by the answer. */
  readonly askedAtMs: number;
  /**
   * How long the asking process had itself known this doubt when it asked, by a monotonic counter of its own. The database's clock may be
   * stepped, and a wait that never took place must not prove anything.
   */
  readonly doubtAgeMs: number;
  readonly check: CheckOutcome;
  readonly jitter: number;
}

export interface DecideReview {
  readonly type: 'DecideReview';
  readonly decision: ReviewDecision;
  /** Makes a repeated decision recognisable; null where the caller has none. */
  readonly decisionId: string | null;
  readonly expectedRevision: number;
  readonly actor: string;
  readonly reason: string;
  readonly evidence: string | null;
  readonly providerOperationId: string | null;
}

/** Why a command is not possible now. The codes are part of the error catalogue. */
export type Refusal =
  | { readonly code: 'operation_not_found' }
  | { readonly code: 'payload_mismatch'; readonly storedHash: string; readonly submittedHash: string }
  | { readonly code: 'action_mismatch'; readonly storedHash: string; readonly submittedHash: string }
  | { readonly code: 'not_cancellable' }
  | { readonly code: 'not_unknown' }
  | { readonly code: 'no_lookup' }
  | { readonly code: 'no_open_review' }
  | { readonly code: 'review_already_decided'; readonly winner: ReviewVerdict }
  | { readonly code: 'revision_mismatch'; readonly revision: number }
  | { readonly code: 'decision_not_allowed'; readonly why: string };

/** Events to append (none: the command has nothing left to do, for example because it is a repetition), or a refusal. */
export type Decision = { readonly events: readonly OperationEvent[]; readonly refusal?: undefined } | { readonly refusal: Refusal };
