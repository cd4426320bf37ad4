import { describe, it } from 'vitest';
import { given } from '../../../support/decider-specification.js';
import { conclude, record, startAttempt, told } from '../support/commands.js';
import { planned, started, succeeded, time, unknown, failed } from '../support/events.js';
import { FIRST_CHECK_MS, HOUR, LEASE_MS, policies } from '../support/policies.js';

describe('RecordOutcome unknown', () => {
  it.each(['b', 'c', 'd'] as const)('class %s: is looked up first', (name) => {
    given(planned(policies[name]), started(0))
      .when(5, record(1, told.timeout))
      .then(['OutcomeUnknown', { attempt: 1, code: 'timeout', status: null, next_check_at: time(5 + FIRST_CHECK_MS) }])
      .thenStatus('unknown')
      .thenReview(null)
      .andAgainNothing();
  });

  it.each(['a', 'e'] as const)('class %s: is repeated after a delay', (name) => {
    given(planned(policies[name]), started(0, 1, HOUR))
      .when(5, record(1, told.timeout, 0.5))
      .then(['OutcomeUnknown', { next_check_at: time(5 + 500) }])
      .when(504, startAttempt)
      .thenNothing()
      .when(505, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }]);
  });

  it('class f and public case 32: with neither way, a person has to decide at once', () => {
    given(planned(policies.f), started(0))
      .when(5, record(1, told.timeout))
      .then(['OutcomeUnknown', { next_check_at: null }], ['ReviewRequested', { reason: 'no_lookup' }])
      .andAgainNothing();
  });

  it('keeps the status that the provider answered with', () => {
    given(planned(), started(0))
      .when(5, record(1, told.serverError))
      .then(['OutcomeUnknown', { code: 'server_error', status: 500 }]);
  });

  it('law 5: coming late, adds nothing to the doubt', () => {
    given(planned(), started(0), unknown(LEASE_MS, 1, { code: 'lease_expired' }))
      .when(LEASE_MS + 5, record(1, told.timeout))
      .thenNothing();
  });

  it('is kept as evidence beside an outcome that came first', () => {
    given(planned(), started(0), unknown(5), succeeded(9, 1, 're_1', 'lookup'))
      .when(11, record(1, told.timeout))
      .thenNothing();
    given(planned(), started(0), succeeded(9, 1, 're_1', 'lookup'))
      .when(11, record(1, told.timeout))
      .then(['EvidenceRecorded', { verdict: 'unknown', code: 'timeout', contradicts: false }])
      .thenStatus('succeeded')
      .andAgainNothing();
    given(planned(), started(0), failed(9))
      .when(11, record(1, told.timeout))
      .then(['EvidenceRecorded', { contradicts: false }])
      .thenReview(null);
  });
});

describe('an expired lease', () => {
  it('public case 17: means find out', () => {
    given(planned(), started(0))
      .when(LEASE_MS, conclude)
      .then(['OutcomeUnknown', { attempt: 1, code: 'lease_expired', next_check_at: time(LEASE_MS + FIRST_CHECK_MS) }])
      .thenStatus('unknown')
      .andAgainNothing();
  });

  it('is none a moment before', () => {
    given(planned(), started(0))
      .when(LEASE_MS - 1, conclude)
      .thenNothing();
  });

  it('goes to a person where the provider cannot be asked', () => {
    given(planned(policies.f), started(0)).when(LEASE_MS, conclude).thenReview('no_lookup');
  });
});
