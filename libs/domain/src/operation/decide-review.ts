import type { DecideReview, Decision } from './commands.js';
import type { OperationEvent } from './events.js';
import { repeatIsHarmless } from './next-step.js';
import type { KnownOperation } from './state.js';

/** A person's verdict. It needs the revision it was based on; the first one wins and every other is told the winner. */
export function decideReview(state: KnownOperation, command: DecideReview, nowMs: number): Decision {
  const winner = state.lastDecision;
  // Recognised also when another review is open by now: the answer to the first one was lost, not its verdict.
  if (winner && command.decisionId !== null && command.decisionId === winner.decisionId && command.decision === winner.decision) {
    return { events: [] };
  }
  if (!state.review) return { refusal: winner ? { code: 'review_already_decided', winner } : { code: 'no_open_review' } };
  if (command.expectedRevision !== state.revision) return { refusal: { code: 'revision_mismatch', revision: state.revision } };
  const why = whyNotAllowed(state, command, nowMs);
  if (why) return { refusal: { code: 'decision_not_allowed', why } };
  const decided: OperationEvent = {
    type: 'ReviewDecided',
    data: {
      decision: command.decision,
      decision_id: command.decisionId,
      actor: command.actor,
      reason: command.reason,
      evidence: command.evidence,
      based_on_revision: command.expectedRevision,
    },
  };
  return { events: [decided, ...consequence(state.history.count, command)] };
}

function whyNotAllowed(state: KnownOperation, command: DecideReview, nowMs: number): string | null {
  if (state.status !== 'unknown') {
    return command.decision === 'acknowledge'
      ? null
      : 'The operation is final and does not move; decide "acknowledge" to close the review.';
  }
  switch (command.decision) {
    case 'acknowledge':
      return 'An unknown outcome has to be decided: happened, did_not_happen, retry_once or give_up.';
    case 'happened':
      return isGiven(command.providerOperationId) || isGiven(command.evidence)
        ? null
        : 'Give provider_operation_id (the effect as the provider names it) or, where there is none, evidence.';
    case 'did_not_happen':
      return isGiven(command.evidence) ? null : 'Give evidence: what shows that it did not happen.';
    case 'retry_once':
      return repeatIsHarmless(state, nowMs)
        ? null
        : 'The provider would not recognise a repetition, so it could cause a second effect. Decide did_not_happen and submit a new revision.';
    case 'give_up':
      return null;
  }
}

function isGiven(text: string | null): boolean {
  return text !== null && text.trim() !== '';
}

function consequence(attempt: number, { decision, providerOperationId, reason }: DecideReview): OperationEvent[] {
  switch (decision) {
    case 'happened':
      return [
        {
          type: 'OperationSucceeded',
          data: { attempt, provider_operation_id: providerOperationId, result: null, response_digest: null, evidence: 'person' },
        },
      ];
    case 'did_not_happen':
      return [{ type: 'OperationFailed', data: { attempt, code: 'did_not_happen', reason, evidence: 'person' } }];
    case 'give_up':
      return [{ type: 'OperationFailed', data: { attempt, code: 'given_up', reason, evidence: 'person' } }];
    case 'retry_once':
    case 'acknowledge':
      return [];
  }
}
