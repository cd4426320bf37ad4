import type { AttemptOutcome } from '../outcome/attempt-outcome.js';
import type { RecordCheck, RecordOutcome } from './commands.js';
import type { EvidenceKind, EvidenceRecorded, LookupPolicy, OperationEvent, OperationPolicy } from './events.js';
import { ALREADY_DONE_AT_FIRST, effectProven, onlyAPersonCanTell, outcomeUnknown, timestamp } from './next-step.js';
import { backoffDelayMs, retryDelayMs } from './retry-policy.js';
import { evidenceKey, LEASE_EXPIRED, type Executing, type KnownOperation, type Unknown } from './state.js';

/** What an attempt's outcome means for the operation as it is now. A repeated or overtaken outcome decides to nothing or to evidence. */
export function decideOutcome(state: KnownOperation, command: RecordOutcome, nowMs: number): OperationEvent[] {
  const { attempt, outcome } = command;
  const isLatest = attempt === state.history.count;
  if (state.status === 'executing' && isLatest) return settle(state, command, nowMs);
  if (state.status === 'unknown' && isLatest) {
    // Late, from an attempt that lost its lease: it may settle the doubt, but "still unknown" adds nothing.
    if (outcome.kind === 'unknown' || state.history.evidenceSeen.includes(evidenceKey(evidenceOf(state, command, 'late_response'))))
      return [];
    const events = settle(state, command, nowMs);
    return events.some((event) => leavesTheDoubt(state, event)) ? [] : events;
  }
  const isOpen = state.status === 'unknown' || state.status === 'failed_retryable';
  if (isOpen && outcome.kind === 'succeeded') return [succeeded(attempt, outcome, 'late_response')];
  return lateEvidence(state, command, 'late_response');
}

/** Whether an event says again what left the operation unknown: the outcome was recorded before. */
function leavesTheDoubt({ history }: Unknown, event: OperationEvent): boolean {
  if (event.type === 'OutcomeUnknown') return event.data.code === history.lastError?.code;
  return event.type === 'AttemptNotSent' && !history.unresolved.includes(event.data.attempt);
}

function settle(state: Executing | Unknown, command: RecordOutcome, nowMs: number): OperationEvent[] {
  const { attempt, outcome, jitter } = command;
  const { history, facts } = state;
  const earlierInDoubt = history.unresolved.some((other) => other !== attempt);
  const proven = history.provenEffect;
  const evidence = state.status === 'executing' ? 'response' : 'late_response';
  if (outcome.kind === 'succeeded') {
    const event = succeeded(attempt, outcome, evidence);
    const otherEffect = proven !== null && proven.providerOperationId !== outcome.providerOperationId;
    return otherEffect ? [event, { type: 'ReviewRequested', data: { reason: 'contradicting_evidence' } }] : [event];
  }
  if (proven) {
    // The effect is known to exist, whatever this attempt met.
    return [...lateEvidence(state, command, evidence), effectProven(proven)];
  }
  switch (outcome.kind) {
    case 'already_done':
      if (earlierInDoubt) return [succeeded(attempt, { providerOperationId: null, result: null, responseDigest: null }, 'already_done')];
      return [outcomeUnknown(state, { code: ALREADY_DONE_AT_FIRST, status: null, nowMs })];
    case 'failed':
      // It says nothing of an earlier send, unless the provider keeps refusals under the key: then they share one fate.
      if (earlierInDoubt && !keepsErrors(facts.policy)) {
        return [outcomeUnknown(state, { code: 'refused_after_ambiguous', status: null, nowMs, jitter })];
      }
      return [{ type: 'OperationFailed', data: { attempt, code: outcome.code, reason: outcome.reason, evidence } }];
    case 'not_sent': {
      const delayMs = retryDelayMs(facts.policy.backoff, attempt, jitter, outcome.retryAfterMs);
      const data = { attempt, code: outcome.code, reached: outcome.reached, retry_at: timestamp(nowMs + delayMs) };
      return [{ type: 'AttemptNotSent', data }];
    }
    case 'unknown':
      return [outcomeUnknown(state, { code: outcome.code, status: outcome.status, nowMs, jitter })];
  }
}

function keepsErrors({ same_key }: OperationPolicy): boolean {
  return same_key?.by === 'key' && same_key.repeats_stored_errors;
}

/** The outcome came too late to decide anything: kept as evidence, once, and put before a person where it contradicts. */
function lateEvidence(state: KnownOperation, told: Told, kind: EvidenceKind): OperationEvent[] {
  const evidence = evidenceOf(state, told, kind);
  if (repeatsTheOutcome(state, evidence) || state.history.evidenceSeen.includes(evidenceKey(evidence))) return [];
  const contradicts = contradictsTheOutcome(state, evidence);
  const events: OperationEvent[] = [{ type: 'EvidenceRecorded', data: { ...evidence, contradicts } }];
  if (contradicts && !state.review) events.push({ type: 'ReviewRequested', data: { reason: 'contradicting_evidence' } });
  return events;
}

type Told = Pick<RecordOutcome, 'attempt' | 'outcome'>;
type Evidence = Omit<EvidenceRecorded['data'], 'contradicts'>;

const ALREADY_DONE = 'already_done';

function evidenceOf(state: KnownOperation, { attempt, outcome }: Told, kind: EvidenceKind): Evidence {
  return {
    attempt,
    kind,
    verdict: outcome.kind === 'already_done' ? rejectionVerdict(state) : outcome.kind,
    provider_operation_id: outcome.kind === 'succeeded' ? outcome.providerOperationId : null,
    code: outcome.kind === 'already_done' ? ALREADY_DONE : 'code' in outcome ? outcome.code : null,
  };
}

/** A rejected repetition caused nothing itself; beside a recorded failure it tells that something under our reference exists. */
function rejectionVerdict(state: KnownOperation): 'succeeded' | 'failed' {
  return state.status === 'failed_final' ? 'succeeded' : 'failed';
}

function repeatsTheOutcome(state: KnownOperation, { attempt, verdict, code, provider_operation_id }: Evidence): boolean {
  const { count, lastError } = state.history;
  if (lastError?.attempt === attempt && lastError.code === (code === ALREADY_DONE ? ALREADY_DONE_AT_FIRST : code)) return true;
  if (state.status === 'succeeded' && state.evidence === 'already_done' && code === ALREADY_DONE && attempt === count) return true;
  if (state.status === 'succeeded') return verdict === 'succeeded' && provider_operation_id === state.providerOperationId;
  return state.status === 'failed_final' && verdict === 'failed' && code === state.code;
}

function contradictsTheOutcome(state: KnownOperation, { attempt, verdict }: Evidence): boolean {
  const disproves = verdict === 'failed' || verdict === 'not_sent';
  switch (state.status) {
    case 'failed_final':
      return verdict === 'succeeded';
    case 'succeeded':
      // Another effect than the recorded one; or the last attempt that can have caused a success that was only concluded did not.
      if (verdict === 'succeeded') return state.providerOperationId !== null;
      return disproves && isConcluded(state.evidence) && state.history.unresolved.every((other) => other === attempt);
    default:
      return false;
  }
}

/** Whether a success was told by something else than an answer to the attempt itself. */
function isConcluded(evidence: EvidenceKind): boolean {
  return evidence !== 'response' && evidence !== 'late_response';
}

/** What a look-up's answer means. Only `unknown` is waiting for one; elsewhere only an effect that should not be there matters. */
export function decideCheck(state: KnownOperation, command: RecordCheck, nowMs: number): OperationEvent[] {
  const { check } = command;
  const attempt = state.history.count;
  const { providerOperationId, result } = check;
  // Two matches or another amount settle nothing, whatever else the answer says.
  const verdict = check.anomaly === null ? check.verdict : 'inconclusive';
  if (state.status !== 'unknown') {
    if (verdict !== 'present') return [];
    const outcome = { kind: 'succeeded', providerOperationId, result, responseDigest: null } as const;
    return lateEvidence(state, { attempt, outcome }, 'lookup');
  }
  const settled = (verdict === 'present' || verdict === 'refused') && !onlyAPersonCanTell(state.history);
  if (!settled && state.checkedAtMs !== null && command.askedAtMs <= state.checkedAtMs) return [];
  const proof = verdict === 'absent' && provesAbsence(state, command);
  const checked: OperationEvent = {
    type: 'OutcomeChecked',
    data: {
      verdict,
      proof,
      code: check.code,
      anomaly: check.anomaly,
      next_check_at: settled || state.review ? null : timestamp(proof ? nowMs : nextCheckMs(state, command, nowMs)),
    },
  };
  if (!settled) return [checked];
  if (verdict === 'present') return [checked, succeeded(attempt, { providerOperationId, result, responseDigest: null }, 'lookup')];
  const reason = 'The provider reports that it refused the operation.';
  return [checked, { type: 'OperationFailed', data: { attempt, code: check.code ?? 'refused', reason, evidence: 'lookup' } }];
}

/**
 * "Not found" proves absence only when asked after every request that may have left has landed, and after an effect would have
 * become visible. A consistent look-up shortens the second wait, never the first: what is still on its way is in no database.
 */
function provesAbsence(state: Unknown, { askedAtMs, doubtAgeMs }: RecordCheck): boolean {
  const { lookup } = state.facts.policy;
  return lookup !== null && askedAtMs >= settledAtMs(state, lookup) && doubtAgeMs >= provingAgeMs(state, lookup);
}

function settledAtMs(state: Unknown, lookup: LookupPolicy): number {
  return state.history.lastPossibleSendMs + settlingMs(lookup);
}

function settlingMs(lookup: LookupPolicy): number {
  return lookup.landing_ms + (lookup.consistent ? 0 : lookup.visibility_lag_ms);
}

/**
 * For how long a process must itself have known the doubt before "not found" proves anything to it. Where a lease was said to be over,
 * a clock that was stepped may have said so early: its holder may still be sending for as long as a lease lasts.
 */
function provingAgeMs({ facts, history }: Unknown, lookup: LookupPolicy): number {
  const leaseMayLast = history.lastError?.code === LEASE_EXPIRED || history.unresolved.length > 1;
  return settlingMs(lookup) + (leaseMayLast ? facts.policy.lease_ms : 0);
}

function nextCheckMs(state: Unknown, { check, jitter, doubtAgeMs }: RecordCheck, nowMs: number): number {
  const { lookup } = state.facts.policy;
  if (lookup === null) return nowMs;
  const { initial_ms, max_ms } = lookup.backoff;
  // Half of the delay is fixed: full jitter alone could spend all look-ups within moments.
  const delayMs = Math.min(initial_ms, max_ms) / 2 + backoffDelayMs(lookup.backoff, state.checks + 1, jitter);
  const lastCheck = state.checks + 2 >= lookup.max_checks;
  // The last look-up must be one that can prove something.
  const provingAtMs = Math.max(settledAtMs(state, lookup), nowMs + provingAgeMs(state, lookup) - doubtAgeMs);
  return check.verdict === 'absent' && lastCheck ? Math.max(nowMs + delayMs, provingAtMs) : nowMs + delayMs;
}

function succeeded(
  attempt: number,
  outcome: Pick<Extract<AttemptOutcome, { kind: 'succeeded' }>, 'providerOperationId' | 'result' | 'responseDigest'>,
  evidence: EvidenceKind,
): OperationEvent {
  const { providerOperationId, result, responseDigest } = outcome;
  return {
    type: 'OperationSucceeded',
    data: { attempt, provider_operation_id: providerOperationId, result, response_digest: responseDigest, evidence },
  };
}
