import { describe, it } from 'vitest';
import { given } from '../../../support/decider-specification.js';
import { record, told } from '../support/commands.js';
import { checked, failed, planned, reviewRequested, started, succeeded, unknown } from '../support/events.js';
import { LEASE_MS, policies } from '../support/policies.js';

describe('RecordOutcome failed', () => {
  it('ends the operation: the provider refused for good', () => {
    given(planned(), started(0))
      .when(5, record(1, told.refusal))
      .then(['OperationFailed', { attempt: 1, code: 'http_402', evidence: 'response' }])
      .thenStatus('failed_final')
      .andAgainNothing();
  });

  it('law 5: coming late, settles the doubt', () => {
    given(planned(), started(0), unknown(LEASE_MS, 1, { code: 'lease_expired' }))
      .when(LEASE_MS + 1, record(1, told.refusal))
      .then(['OperationFailed', { attempt: 1, evidence: 'late_response' }])
      .andAgainNothing();
  });

  it('says nothing of an earlier send in doubt, where the provider would not have recognised it', () => {
    given(planned(policies.e), started(0), unknown(5), started(2000, 2))
      .when(2005, record(2, told.refusal))
      .then(['OutcomeUnknown', { attempt: 2, code: 'refused_after_ambiguous' }])
      .thenStatus('unknown')
      .andAgainNothing();
  });

  it('speaks for the earlier send too, where the provider keeps errors under the key', () => {
    given(planned(policies.a), started(0), unknown(5), started(2000, 2)).when(2005, record(2, told.refusal)).thenStatus('failed_final');
  });

  it('does not where the provider keeps only successes: the earlier send may still land', () => {
    given(planned(policies.b), started(0), unknown(5), started(2000, 2))
      .when(2005, record(2, told.refusal))
      .then(['OutcomeUnknown', { code: 'refused_after_ambiguous' }])
      .andAgainNothing();
  });

  it('ends the operation once the earlier send is proven absent', () => {
    given(planned(), started(0), unknown(5), checked(90_000, 'absent', { proof: true }), started(90_001, 2))
      .when(90_005, record(2, told.refusal))
      .thenStatus('failed_final');
  });

  it('closes the review of the doubt that it settles', () => {
    given(planned(policies.f), started(0), unknown(5), reviewRequested(5)).when(9, record(1, told.refusal)).thenReview(null);
  });

  describe('after the operation is final', () => {
    it('law 1: decides to nothing when it is the same refusal', () => {
      given(planned(), started(0), failed(5)).when(9, record(1, told.refusal)).thenNothing();
    });

    it('is evidence without a contradiction when it is an older attempt’s', () => {
      given(planned(policies.a), started(0), unknown(5), started(2000, 2), succeeded(2005, 2))
        .when(2009, record(1, told.refusal))
        .then(['EvidenceRecorded', { verdict: 'failed', code: 'http_402', contradicts: false }])
        .thenReview(null)
        .andAgainNothing();
    });

    it.each(['lookup', 'person'] as const)('law 4: contradicts a success by %s that only this attempt could have caused', (by) => {
      given(planned(), started(0), unknown(5), succeeded(9, 1, 're_1', by))
        .when(11, record(1, told.refusal))
        .then(['EvidenceRecorded', { verdict: 'failed', contradicts: true }], ['ReviewRequested', { reason: 'contradicting_evidence' }])
        .thenStatus('succeeded')
        .andAgainNothing();
    });
  });
});
