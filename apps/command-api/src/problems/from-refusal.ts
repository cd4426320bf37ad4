import { guidanceFor, timestamp, type KnownOperation, type LoadedOperation, type Refusal, type ReviewVerdict } from '#domain';
import { etagOf } from '../http/etag.js';
import { Problem, type ProblemExtras } from './problem.js';

/** A refusal of the core as an answer. It names the operation and says how it stands, and never what another request submitted. */
export function problemFromRefusal(refusal: Refusal, { state }: LoadedOperation, nowMs: number): Problem {
  if (refusal.code === 'operation_not_found' || state.status === 'absent') return new Problem('operation_not_found');
  const about = { operation_id: state.facts.operationId, operation_status: state.status, guidance: guidanceFor(state, nowMs) };
  return new Problem(refusal.code, { ...particulars(refusal, state), members: { ...about, ...membersOf(refusal) } });
}

function particulars(refusal: Refusal, state: KnownOperation): ProblemExtras {
  switch (refusal.code) {
    case 'decision_not_allowed':
      return { detail: refusal.why };
    case 'revision_mismatch':
      return { headers: { etag: etagOf(refusal.revision) } };
    case 'review_already_decided':
      return { headers: { etag: etagOf(state.revision) } };
    default:
      return {};
  }
}

function membersOf(refusal: Refusal): Record<string, unknown> {
  switch (refusal.code) {
    case 'payload_mismatch':
    case 'action_mismatch':
      return { stored_payload_hash: refusal.storedHash, submitted_payload_hash: refusal.submittedHash };
    case 'revision_mismatch':
      return { revision: refusal.revision };
    case 'review_already_decided':
      return { winner: describeVerdict(refusal.winner) };
    default:
      return {};
  }
}

function describeVerdict({ decision, decisionId, actor, reason, decidedAtMs }: ReviewVerdict): Record<string, unknown> {
  return { decision, decision_id: decisionId, actor, reason, decided_at: timestamp(decidedAtMs) };
}
