import { describe, expect, it } from 'vitest';
import { nextStep } from '#domain';
import { given, T0 } from '../../../support/decider-specification.js';
import { startAttempt } from '../support/commands.js';
import { checked, failed, notSent, planned, reviewDecided, reviewRequested, started, succeeded, time, unknown } from '../support/events.js';
import { HOUR, LEASE_MS, MINUTE, policies } from '../support/policies.js';

describe('StartAttempt', () => {
  it('claims the first attempt, with a lease', () => {
    given(planned())
      .when(100, startAttempt)
      .then([
        'AttemptStarted',
        { attempt: 1, attempt_id: 'a-new', worker: 'w0', lease_seconds: 10, lease_until: time(100 + LEASE_MS), safe_retry_until: null },
      ])
      .thenStatus('executing')
      .andAgainNothing();
  });

  it('counts on from the attempts before', () => {
    given(planned(), started(0), notSent(5))
      .when(1005, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }]);
  });

  it.each([
    ['executing: the lease is somebody else’s', [planned(), started(0)]],
    ['before a retry is due', [planned(), started(0), notSent(5, 1, { retryMs: 101 })]],
    ['unknown and not yet looked up', [planned(), started(0), unknown(5)]],
    ['unknown with a review open', [planned(policies.f), started(0), unknown(5), reviewRequested(5)]],
    ['succeeded', [planned(), started(0), succeeded(5)]],
    ['failed_final', [planned(), started(0), failed(5)]],
  ] as const)('decides to nothing when %s', (_, events) => {
    given(...events)
      .when(100, startAttempt)
      .thenNothing();
  });

  it('law 5 and public case 17: an expired lease is no reason to start', () => {
    given(planned(), started(0)).when(LEASE_MS, startAttempt).thenNothing();
  });

  it('starts again once absence is proven', () => {
    given(planned(), started(0), unknown(5), checked(90_000, 'absent', { proof: true }))
      .when(90_000, startAttempt)
      .then(['AttemptStarted']);
  });

  it('starts once more when a person granted it, also beyond the budget', () => {
    const thrice = [started(0), notSent(1), started(2, 2), notSent(3, 2), started(4, 3), unknown(5, 3)];
    given(planned(policies.e), ...thrice, reviewRequested(5, 'attempts_exhausted'), reviewDecided(6, 'retry_once'))
      .when(7, startAttempt)
      .then(['AttemptStarted', { attempt: 4 }]);
  });

  describe('safe_retry_until', () => {
    const window = HOUR - MINUTE;

    it('is the first send plus the retention of the provider’s key less the margin', () => {
      given(planned(policies.b))
        .when(100, startAttempt)
        .then(['AttemptStarted', { safe_retry_until: time(100 + window) }]);
    });

    it('counts from the first send that the provider has seen, not from the last', () => {
      given(planned(policies.b), started(100, 1, 100 + window), notSent(200, 1, { reached: true }))
        .when(9000, startAttempt)
        .then(['AttemptStarted', { safe_retry_until: time(100 + window) }]);
    });

    it('still counts from the first after more of them', () => {
      const twice = [started(100, 1, 100 + window), notSent(200, 1), started(5000, 2, 100 + window), notSent(5100, 2)];
      given(planned(policies.b), ...twice)
        .when(9000, startAttempt)
        .then(['AttemptStarted', { attempt: 3, safe_retry_until: time(100 + window) }]);
    });

    it('does not count a send of which no byte arrived', () => {
      given(planned(policies.b), started(100, 1, 100 + window), notSent(200, 1, { reached: false }))
        .when(9000, startAttempt)
        .then(['AttemptStarted', { safe_retry_until: time(9000 + window) }]);
    });

    it.each(['c', 'd', 'e', 'f'] as const)('is none for class %s, which forgets nothing because it honours no key', (name) => {
      given(planned(policies[name]))
        .when(0, startAttempt)
        .then(['AttemptStarted', { safe_retry_until: null }]);
    });
  });

  it('waits for the lease and no longer', () => {
    const { state } = given(planned(), started(0));
    expect(nextStep(state, T0 + LEASE_MS - 1)).toEqual({ step: 'wait', untilMs: T0 + LEASE_MS });
    expect(nextStep(state, T0 + LEASE_MS).step).toBe('record');
  });
});
