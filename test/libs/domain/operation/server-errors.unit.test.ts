import { describe, expect, it } from 'vitest';
import { repeatIsHarmless, type OperationState, type Unknown } from '#domain';
import { given, T0 } from '../../../support/decider-specification.js';
import { decideReview, startAttempt } from '../support/commands.js';
import { notSent, planned, reviewRequested, started, unknown } from '../support/events.js';
import { HOUR, MINUTE, policies } from '../support/policies.js';

const keyUntilMs = HOUR - MINUTE;
const serverError = (afterMs: number, attempt = 1) => unknown(afterMs, attempt, { code: 'server_error', status: 500 });
const harmless = (state: OperationState, afterMs: number) => repeatIsHarmless(state as Unknown, T0 + afterMs);

describe('a server error, of which nobody knows whether the effect came before it', () => {
  const doubt = [planned(policies.b), started(0, 1, keyUntilMs), serverError(5), reviewRequested(5, 'attempts_exhausted')];

  it('is never repeated under a key that keeps successes only, not even by a person', () => {
    const state = given(...doubt);
    expect(harmless(state.state, 10)).toBe(false);
    state.when(10, startAttempt).thenNothing();
    state.when(10, decideReview({ decision: 'retry_once' })).thenRefused({ code: 'decision_not_allowed' });
  });

  it('stays what it is whatever is learned late of another attempt', () => {
    // The other attempt has lost its lease; its worker wakes and tells that nothing was sent, or that it heard nothing.
    const two = [planned(policies.b), started(0, 1, keyUntilMs), unknown(1, 1), started(2, 2, keyUntilMs), serverError(5, 2)];
    for (const late of [notSent(9, 1, { reached: false }), unknown(9, 1)]) {
      const { state } = given(...two, late);
      expect(harmless(state, 10)).toBe(false);
    }
  });

  it('that was disproved no longer stands against a later doubt', () => {
    const { state } = given(
      planned(policies.b),
      ...[started(0, 1, keyUntilMs), serverError(5), notSent(6, 1, { reached: true }), started(7, 2, keyUntilMs), unknown(8, 2)],
    );
    expect(harmless(state, 10)).toBe(true);
  });
});
