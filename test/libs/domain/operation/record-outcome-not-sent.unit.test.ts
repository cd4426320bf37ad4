import { describe, expect, it } from 'vitest';
import { backoffDelayMs, RETRY_AFTER_MAX_MS } from '#domain';
import { given } from '../../../support/decider-specification.js';
import { conclude, record, startAttempt, told } from '../support/commands.js';
import { notSent, planned, reviewRequested, started, time, unknown } from '../support/events.js';
import { LEASE_MS, policies } from '../support/policies.js';

describe('RecordOutcome not sent', () => {
  it('waits to be retried: nothing can have happened', () => {
    given(planned(), started(0))
      .when(5, record(1, told.notReached, 0.5))
      .then(['AttemptNotSent', { attempt: 1, code: 'connection_refused', reached: false, retry_at: time(5 + 500) }])
      .thenStatus('failed_retryable')
      .andAgainNothing();
  });

  it('honours Retry-After', () => {
    given(planned(), started(0))
      .when(5, record(1, { ...told.tooMany, retryAfterMs: 7000 }))
      .then(['AttemptNotSent', { reached: true, retry_at: time(5 + 7000) }])
      .when(7004, startAttempt)
      .thenNothing();
  });

  it('believes a Retry-After of a day at most', () => {
    given(planned(), started(0))
      .when(0, record(1, { ...told.tooMany, retryAfterMs: 400 * RETRY_AFTER_MAX_MS }))
      .then(['AttemptNotSent', { retry_at: time(RETRY_AFTER_MAX_MS) }]);
  });

  it('with an earlier send in doubt, leaves it in doubt', () => {
    given(planned(policies.a), started(0, 1, 90_000), unknown(5), started(2000, 2, 90_000))
      .when(2005, record(2, told.tooMany))
      .then(['AttemptNotSent', { attempt: 2 }])
      .thenStatus('unknown')
      .andAgainNothing();
  });

  it('law 5: coming late, ends the doubt that a lost lease left, and the review with it', () => {
    given(planned(policies.f), started(0), unknown(LEASE_MS, 1, { code: 'lease_expired', checkMs: null }), reviewRequested(LEASE_MS))
      .when(LEASE_MS + 5, record(1, told.notReached))
      .then(['AttemptNotSent'])
      .thenStatus('failed_retryable')
      .thenReview(null)
      .andAgainNothing()
      .when(LEASE_MS + 2000, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }]);
  });

  describe('for the last time', () => {
    const lastUnderWay = [planned(), started(0), notSent(1), started(1001, 2), notSent(1002, 2), started(5000, 3)];

    it('spends the budget: the operation fails, because no send was ever ambiguous', () => {
      given(...lastUnderWay)
        .when(5001, record(3, told.tooMany))
        .then(['AttemptNotSent', { attempt: 3 }], ['OperationFailed', { code: 'attempts_exhausted', evidence: 'budget' }])
        .thenStatus('failed_final')
        .andAgainNothing();
    });

    it('never fails by the budget with an ambiguous send before', () => {
      const ambiguous = [planned(policies.e), started(0), unknown(5), started(2000, 2), notSent(2001, 2), started(9000, 3)];
      given(...ambiguous)
        .when(9001, record(3, told.notReached))
        .thenStatus('unknown')
        .thenReview('attempts_exhausted')
        .andAgainNothing()
        .when(9001, conclude)
        .thenNothing();
    });
  });

  it('spreads its retries as the retry policy says', () => {
    const jitter = 0.25;
    given(planned(), started(0), notSent(1), started(1001, 2))
      .when(2000, record(2, told.tooMany, jitter))
      .then(['AttemptNotSent', { retry_at: time(2000 + backoffDelayMs(policies.d.backoff, 2, jitter)) }]);
    expect(backoffDelayMs(policies.d.backoff, 2, jitter)).toBe(500);
  });
});
