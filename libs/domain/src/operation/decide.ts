import type { Decision, OperationCommand, PlanOperation } from './commands.js';
import type { OperationEvent } from './events.js';
import { decideReview } from './decide-review.js';
import { nextStep, timestamp } from './next-step.js';
import { decideCheck, decideOutcome } from './settle.js';
import { evolve, type KnownOperation, type OperationState } from './state.js';

/** More conclusions in a row than any state allows: an unknown outcome, a spent budget, a review. */
const CONCLUSIONS_MAX = 4;

/** Decides a command and at once draws what follows from it, so that no stream rests in a state that a clock tick would change. */
export function decide(state: OperationState, command: OperationCommand, nowMs: number): Decision {
  const decision = decideAlone(state, command, nowMs);
  if (decision.refusal || (decision.events.length === 0 && command.type !== 'Conclude')) return decision;
  const events = [...decision.events];
  let after = foldDecided(state, events, nowMs);
  for (let n = 0; n < CONCLUSIONS_MAX; n++) {
    const next = nextStep(after, nowMs);
    if (next.step !== 'record') break;
    events.push(...next.events);
    after = foldDecided(after, next.events, nowMs);
  }
  return { events };
}

/** Folds events that are about to be appended, as they will be read back. */
export function foldDecided(state: OperationState, events: readonly OperationEvent[], nowMs: number, tenant = ''): OperationState {
  return events.reduce<OperationState>(
    (folded, event) => evolve(folded, event, { tenant, atMs: nowMs, revision: folded.status === 'absent' ? 0 : folded.revision + 1 }),
    state,
  );
}

function decideAlone(state: OperationState, command: OperationCommand, nowMs: number): Decision {
  if (command.type === 'PlanOperation') return plan(state, command);
  if (state.status === 'absent') return { refusal: { code: 'operation_not_found' } };
  switch (command.type) {
    case 'CancelOperation':
      return cancel(state, command.reason);
    case 'StartAttempt':
      return startAttempt(state, command, nowMs);
    case 'RecordOutcome':
      return { events: decideOutcome(state, command, nowMs) };
    case 'RecordCheck':
      return { events: decideCheck(state, command, nowMs) };
    case 'RequestCheck':
      return requestCheck(state, command.reason);
    case 'DecideReview':
      return decideReview(state, command, nowMs);
    case 'Conclude':
      return { events: [] };
  }
}

function plan(state: OperationState, { planned, payloadHashes }: PlanOperation): Decision {
  if (state.status === 'absent') return { events: [{ type: 'OperationPlanned', data: planned }] };
  const hashes = { storedHash: state.facts.payloadHash, submittedHash: planned.payload_hash };
  if (state.facts.actionType !== planned.action_type) return { refusal: { code: 'action_mismatch', ...hashes } };
  if (!payloadHashes.includes(state.facts.payloadHash)) return { refusal: { code: 'payload_mismatch', ...hashes } };
  return { events: [] };
}

function cancel(state: KnownOperation, reason: string): Decision {
  if (state.status === 'planned') return { events: [{ type: 'OperationCancelled', data: { reason } }] };
  if (state.status === 'failed_final' && state.code === 'cancelled') return { events: [] };
  return { refusal: { code: 'not_cancellable' } };
}

function startAttempt(state: KnownOperation, { attemptId, worker }: { attemptId: string; worker: string }, nowMs: number): Decision {
  if (nextStep(state, nowMs).step !== 'start_attempt') return { events: [] };
  const { policy } = state.facts;
  const keyFirstSeenMs = state.history.keySeen?.atMs ?? nowMs;
  const safeRetryUntilMs = policy.same_key?.by === 'key' ? keyFirstSeenMs + policy.same_key.retention_ms - policy.same_key.margin_ms : null;
  return {
    events: [
      {
        type: 'AttemptStarted',
        data: {
          attempt: state.history.count + 1,
          attempt_id: attemptId,
          worker,
          lease_seconds: policy.lease_ms / 1000,
          lease_until: timestamp(nowMs + policy.lease_ms),
          safe_retry_until: safeRetryUntilMs === null ? null : timestamp(safeRetryUntilMs),
        },
      },
    ],
  };
}

function requestCheck(state: KnownOperation, reason: string | null): Decision {
  if (state.status !== 'unknown') return { refusal: { code: 'not_unknown' } };
  if (state.facts.policy.lookup === null) return { refusal: { code: 'no_lookup' } };
  return { events: state.checkRequested ? [] : [{ type: 'CheckRequested', data: { reason } }] };
}
