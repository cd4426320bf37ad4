import type { OperationEvent, OperationPolicy } from './events.js';
import { backoffDelayMs } from './retry-policy.js';
import {
  KEY_RETENTION_PASSED,
  LEASE_EXPIRED,
  type AttemptHistory,
  type KnownOperation,
  type OperationState,
  type ProvenEffect,
  type Unknown,
} from './state.js';

/**
 * What is to be done for an operation now. First attempts, retries, expired leases and reconciliation all come from here: recovery
 * is the normal path run again.
 */
export type NextStep =
  /** Nothing until something arrives: final, or waiting for a person. */
  | { readonly step: 'none' }
  | { readonly step: 'wait'; readonly untilMs: number }
  | { readonly step: 'start_attempt' }
  | { readonly step: 'look_up' }
  /** A conclusion that needs nobody: append these events. */
  | { readonly step: 'record'; readonly events: readonly OperationEvent[] };

const NONE: NextStep = { step: 'none' };

export function nextStep(state: OperationState, nowMs: number): NextStep {
  if (state.status === 'absent' || state.status === 'succeeded' || state.status === 'failed_final') return NONE;
  // Nobody is disturbed while the lease lasts, whatever else has been learnt since.
  if (state.status === 'executing' && nowMs < state.leaseUntilMs) return { step: 'wait', untilMs: state.leaseUntilMs };
  // The effect exists: to look it up or to send again could only do harm.
  if (state.history.provenEffect) return record(effectProven(state.history.provenEffect));
  switch (state.status) {
    case 'planned':
      return { step: 'start_attempt' };
    case 'executing':
      // An expired lease means: find out. Never: run again (public case 17).
      return record(outcomeUnknown(state, { code: LEASE_EXPIRED, status: null, nowMs }));
    case 'failed_retryable':
      if (attemptsUsedUp(state)) return record(attemptsExhausted(state));
      if (nowMs < state.retryAtMs) return { step: 'wait', untilMs: state.retryAtMs };
      if (keyWindowPassed(state.history, nowMs)) return record(outcomeUnknown(state, { code: KEY_RETENTION_PASSED, status: null, nowMs }));
      return { step: 'start_attempt' };
    case 'unknown':
      return reconcile(state, nowMs);
  }
}

/** The ways out of `unknown`, in the order of the policy. Time alone opens a review at most; it never settles anything. */
function reconcile(state: Unknown, nowMs: number): NextStep {
  const { policy } = state.facts;
  if (state.checkRequested && policy.lookup) return { step: 'look_up' };
  if (state.review) return NONE;
  if (state.retryGranted) return repeatIsHarmless(state, nowMs) ? { step: 'start_attempt' } : review('retry_no_longer_safe');
  if (state.anomaly) return review(state.anomaly);
  if (onlyAPersonCanTell(state.history)) return review(state.history.lastError!.code);
  if (state.absenceProven) return afterProvenAbsence(state, nowMs);
  for (const way of policy.on_unknown) {
    if (way === 'review') break;
    if (way === 'lookup' && lookupsLeft(state)) return dueAt(state.nextCheckAtMs, nowMs, { step: 'look_up' });
    if (way === 'same_key_retry' && sameKeyRetryAllowed(state, nowMs)) return dueAt(state.nextCheckAtMs, nowMs, { step: 'start_attempt' });
  }
  return review(whyReview(state, nowMs));
}

function afterProvenAbsence(state: Unknown, nowMs: number): NextStep {
  const { history, facts } = state;
  // After the retention a provider may take the old key for a new one; an ambiguous send is then no longer ours to repeat.
  if (history.everAmbiguous && keyWindowPassed(history, nowMs)) return review(KEY_RETENTION_PASSED);
  if (answersStoredError(history, facts.policy)) return review('stored_error');
  if (attemptsUsedUp(state)) return record(attemptsExhausted(state));
  return { step: 'start_attempt' };
}

/** Whether one more send with the same key is certain to cause no second effect. */
export function repeatIsHarmless(state: Unknown, nowMs: number): boolean {
  const { history, facts } = state;
  const { same_key } = facts.policy;
  if (onlyAPersonCanTell(history)) return false;
  if (state.absenceProven) return !(history.everAmbiguous && keyWindowPassed(history, nowMs));
  if (same_key === null) return false;
  if (same_key.by === 'reference') return true;
  // A provider that keeps no error under the key takes the repetition for a new request, and its 5xx may have come after the effect;
  // whatever became of other attempts since.
  const { serverErrors, unresolved } = history;
  if (!same_key.repeats_stored_errors && serverErrors.some((attempt) => unresolved.includes(attempt))) return false;
  return history.safeRetryUntilMs !== null && nowMs < history.safeRetryUntilMs;
}

function sameKeyRetryAllowed(state: Unknown, nowMs: number): boolean {
  return !attemptsUsedUp(state) && !answersStoredError(state.history, state.facts.policy) && repeatIsHarmless(state, nowMs);
}

/** A saved 5xx would only be repeated by a provider that stores errors under the key, also after it has answered otherwise in between. */
function answersStoredError({ serverErrors }: AttemptHistory, { same_key }: OperationPolicy): boolean {
  return same_key?.by === 'key' && same_key.repeats_stored_errors && serverErrors.length > 0;
}

export const ALREADY_DONE_AT_FIRST = 'already_done_at_first_attempt';

/** The reference was taken before we sent anything: somebody else's effect, which a look-up or a repeat would mistake for ours. */
export function onlyAPersonCanTell({ lastError }: AttemptHistory): boolean {
  return lastError?.code === ALREADY_DONE_AT_FIRST;
}

function keyWindowPassed({ keySeen, safeRetryUntilMs }: AttemptHistory, nowMs: number): boolean {
  return keySeen !== null && safeRetryUntilMs !== null && nowMs >= safeRetryUntilMs;
}

function attemptsUsedUp({ history, facts }: KnownOperation): boolean {
  return history.count >= facts.policy.max_attempts;
}

function lookupsLeft({ checks, facts }: Unknown): boolean {
  return facts.policy.lookup !== null && checks < facts.policy.lookup.max_checks;
}

function whyReview(state: Unknown, nowMs: number): string {
  const { history, facts } = state;
  if (keyWindowPassed(history, nowMs)) return KEY_RETENTION_PASSED;
  if (answersStoredError(history, facts.policy)) return 'stored_error';
  if (facts.policy.lookup && facts.policy.on_unknown.includes('lookup')) return 'lookup_inconclusive';
  if (facts.policy.same_key && attemptsUsedUp(state)) return 'attempts_exhausted';
  return 'no_lookup';
}

/** `OutcomeUnknown` with the time of the first way out that the policy still allows; null when only a person is left. */
export function outcomeUnknown(
  state: KnownOperation,
  { code, status, nowMs, jitter = 1 }: { code: string; status: number | null; nowMs: number; jitter?: number },
): OperationEvent {
  const { policy } = state.facts;
  const delayMs = policy.on_unknown
    .map((way) => {
      if (way === 'lookup') return policy.lookup ? policy.lookup.first_check_ms : null;
      if (way === 'same_key_retry') return policy.same_key ? backoffDelayMs(policy.backoff, state.history.count, jitter) : null;
      return null;
    })
    .find((delay) => delay !== null);
  const next_check_at = delayMs === undefined || code === ALREADY_DONE_AT_FIRST ? null : timestamp(nowMs + delayMs!);
  return { type: 'OutcomeUnknown', data: { attempt: state.history.count, code, status, next_check_at } };
}

/** The success that an effect seen earlier comes to, once no newer attempt is under way. */
export function effectProven({ attempt, providerOperationId, evidence }: ProvenEffect): OperationEvent {
  return {
    type: 'OperationSucceeded',
    data: { attempt, provider_operation_id: providerOperationId, result: null, response_digest: null, evidence },
  };
}

function attemptsExhausted(state: KnownOperation): OperationEvent {
  return {
    type: 'OperationFailed',
    data: {
      attempt: state.history.count,
      code: 'attempts_exhausted',
      reason: `All ${state.history.count} attempts ended before the provider consumed anything; the last one with ${state.history.lastError?.code ?? 'no answer'}.`,
      evidence: 'budget',
    },
  };
}

function dueAt(atMs: number | null, nowMs: number, step: NextStep): NextStep {
  return atMs !== null && nowMs < atMs ? { step: 'wait', untilMs: atMs } : step;
}

function review(reason: string): NextStep {
  return record({ type: 'ReviewRequested', data: { reason } });
}

function record(event: OperationEvent): NextStep {
  return { step: 'record', events: [event] };
}

export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
