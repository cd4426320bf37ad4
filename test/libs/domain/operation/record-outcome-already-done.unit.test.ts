import { describe, it } from 'vitest';
import { given } from '../../../support/decider-specification.js';
import { conclude, decideReview, present, record, recordCheck, requestCheck, told } from '../support/commands.js';
import { failed, notSent, planned, reviewDecided, reviewRequested, started, succeeded, unknown } from '../support/events.js';
import { LEASE_MS, policies } from '../support/policies.js';

const AT_FIRST = 'already_done_at_first_attempt';

describe('RecordOutcome already done: the business reference was rejected as a repetition', () => {
  it('proves an earlier ambiguous send', () => {
    given(planned(policies.e), started(0), unknown(5), started(2000, 2))
      .when(2005, record(2, told.alreadyDone))
      .then(['OperationSucceeded', { attempt: 2, provider_operation_id: null, evidence: 'already_done' }])
      .thenStatus('succeeded')
      .andAgainNothing();
  });

  it.each([
    ['at the first attempt', [planned(policies.e), started(0)], 1],
    ['after sends that were all consumed by nobody', [planned(policies.e), started(0), notSent(5), started(2000, 2)], 2],
  ] as const)('proves nothing %s: it is somebody else’s effect, for a person', (_, events, attempt) => {
    given(...events)
      .when(2005, record(attempt, told.alreadyDone))
      .then(['OutcomeUnknown', { attempt, code: AT_FIRST, next_check_at: null }], ['ReviewRequested', { reason: AT_FIRST }])
      .thenStatus('unknown')
      .andAgainNothing();
  });

  describe('at the first attempt', () => {
    const withLookup = { ...policies.e, lookup: policies.c.lookup };
    const foreign = [planned(withLookup), started(0), unknown(5, 1, { code: AT_FIRST, checkMs: null }), reviewRequested(5, AT_FIRST)];

    it('cannot be repeated once more: the repetition would be rejected and taken for proof', () => {
      given(...foreign)
        .when(9, decideReview({ decision: 'retry_once' }))
        .thenRefused({ code: 'decision_not_allowed' });
    });

    it('is not settled by a look-up, which would take the other effect for ours', () => {
      given(...foreign)
        .when(9, requestCheck)
        .when(90_000, recordCheck(89_999, present))
        .then(['OutcomeChecked', { verdict: 'present' }])
        .thenStatus('unknown')
        .thenReview(AT_FIRST)
        .andAgainNothing();
    });

    it('stays with the person’s verdict when it is told again', () => {
      given(...foreign, reviewDecided(9, 'did_not_happen'), failed(9, 1, 'did_not_happen', 'person'))
        .when(11, record(1, told.alreadyDone))
        .thenNothing();
    });
  });

  describe('of an older attempt', () => {
    const second = [planned(policies.e), started(0), unknown(LEASE_MS, 1, { code: 'lease_expired' }), started(20_000, 2)];

    it('is no contradiction to the newer one that succeeded', () => {
      given(...second, succeeded(20_005, 2))
        .when(20_009, record(1, told.alreadyDone))
        .then(['EvidenceRecorded', { attempt: 1, verdict: 'failed', code: 'already_done', contradicts: false }])
        .thenReview(null)
        .andAgainNothing();
    });

    it('proves nothing about the effect: two rejections are somebody else’s', () => {
      given(...second)
        .when(20_003, record(1, told.alreadyDone))
        .then(['EvidenceRecorded', { attempt: 1, verdict: 'failed', contradicts: false }])
        .thenStatus('executing')
        .andAgainNothing()
        .when(20_005, record(2, told.alreadyDone))
        .thenStatus('unknown')
        .thenReview(AT_FIRST);
    });

    it('contradicts the success that was concluded from it', () => {
      given(...second, succeeded(20_005, 2, null, 'already_done'))
        .when(20_009, record(1, told.alreadyDone))
        .then(['EvidenceRecorded', { attempt: 1, contradicts: true }], ['ReviewRequested', { reason: 'contradicting_evidence' }])
        .andAgainNothing();
    });

    it('contradicts a failure: something under our reference exists', () => {
      given(
        ...second,
        unknown(20_005, 2),
        reviewRequested(20_005),
        reviewDecided(21_000, 'did_not_happen'),
        failed(21_000, 2, 'did_not_happen', 'person'),
      )
        .when(22_000, record(1, told.alreadyDone))
        .then(['EvidenceRecorded', { verdict: 'succeeded', contradicts: true }], ['ReviewRequested'])
        .thenStatus('failed_final')
        .andAgainNothing();
    });
  });

  it('is left to the lease and to time as any other doubt is', () => {
    given(planned(policies.e), started(0))
      .when(LEASE_MS, conclude)
      .then(['OutcomeUnknown', { code: 'lease_expired' }]);
  });
});
