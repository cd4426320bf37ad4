import { describe, it } from 'vitest';
import { given } from '../../../support/decider-specification.js';
import { record, startAttempt, told } from '../support/commands.js';
import { checked, evidence, notSent, planned, reviewRequested, started, succeeded, unknown } from '../support/events.js';
import { LEASE_MS, policies } from '../support/policies.js';

/** Attempt 1 was proven absent too early (an undeclared late landing), so that a second one is under way. */
const twoAttempts = [planned(), started(0), unknown(5), checked(90_000, 'absent', { proof: true }), started(90_001, 2)];

describe('RecordOutcome succeeded', () => {
  it('finishes the operation with the provider’s id and result', () => {
    given(planned(), started(0))
      .when(5, record(1, told.success()))
      .then(['OperationSucceeded', { attempt: 1, provider_operation_id: 're_1', result: 'sealed-result', evidence: 'response' }])
      .thenStatus('succeeded')
      .andAgainNothing();
  });

  it('law 5: coming late, settles the doubt', () => {
    given(planned(), started(0), unknown(LEASE_MS, 1, { code: 'lease_expired' }))
      .when(LEASE_MS + 1, record(1, told.success()))
      .then(['OperationSucceeded', { attempt: 1, evidence: 'late_response' }])
      .thenStatus('succeeded')
      .andAgainNothing();
  });

  it('closes the review of the doubt that it settles', () => {
    given(planned(policies.f), started(0), unknown(5), reviewRequested(5))
      .when(9, record(1, told.success()))
      .thenStatus('succeeded')
      .thenReview(null);
  });

  it('settles the doubt also when it is an older attempt’s', () => {
    given(...twoAttempts, unknown(90_005, 2))
      .when(90_009, record(1, told.success()))
      .then(['OperationSucceeded', { attempt: 1, evidence: 'late_response' }])
      .andAgainNothing();
  });

  it('law 5: of an older attempt, does not overwrite the newer one that is under way', () => {
    given(...twoAttempts)
      .when(90_005, record(1, told.success()))
      .then([
        'EvidenceRecorded',
        { attempt: 1, kind: 'late_response', verdict: 'succeeded', provider_operation_id: 're_1', contradicts: false },
      ])
      .thenStatus('executing')
      .andAgainNothing();
  });

  describe('of an older attempt, while a newer one was under way: the effect is proven', () => {
    const proven = [...twoAttempts, evidence(90_003, 1, { provider_operation_id: 're_1' })];

    it.each([
      ['timed out', told.timeout],
      ['was refused', told.refusal],
      ['was not sent', told.tooMany],
      ['was rejected as a repetition', told.alreadyDone],
    ])('whatever the newer one met: it %s, which is kept as evidence', (_, outcome) => {
      given(...proven)
        .when(90_005, record(2, outcome))
        .then(
          ['EvidenceRecorded', { attempt: 2, contradicts: false }],
          ['OperationSucceeded', { attempt: 1, provider_operation_id: 're_1' }],
        )
        .thenStatus('succeeded')
        .thenReview(null)
        .andAgainNothing();
    });

    it('law 2: also when the newer one’s lease ends; nothing is looked up or sent again', () => {
      given(...proven)
        .when(90_001 + LEASE_MS, { type: 'Conclude' })
        .then(['OperationSucceeded', { attempt: 1, provider_operation_id: 're_1', evidence: 'late_response' }])
        .thenStatus('succeeded');
    });

    it('and the same effect, when the newer one was answered with its id', () => {
      given(...proven)
        .when(90_005, record(2, told.success('re_1')))
        .then(['OperationSucceeded', { attempt: 2 }])
        .thenReview(null);
    });

    it('and a second effect, when the newer one caused another: a person must see it', () => {
      given(...proven)
        .when(90_005, record(2, told.success('re_2')))
        .then(
          ['OperationSucceeded', { attempt: 2, provider_operation_id: 're_2' }],
          ['ReviewRequested', { reason: 'contradicting_evidence' }],
        )
        .andAgainNothing();
    });
  });

  it('law 2: of an older attempt, while the next one waits to be retried: it is not sent again', () => {
    const waiting = given(...twoAttempts, notSent(90_005, 2));
    waiting
      .when(90_006, record(1, told.success()))
      .then(['OperationSucceeded', { attempt: 1, evidence: 'late_response', result: 'sealed-result' }])
      .thenStatus('succeeded')
      .andAgainNothing()
      .when(99_000, startAttempt)
      .thenNothing();
  });

  describe('after the operation is final', () => {
    it('law 1: decides to nothing when it names the same effect', () => {
      given(planned(), started(0), succeeded(5))
        .when(9, record(1, told.success('re_1')))
        .thenNothing();
    });

    it('law 4: opens a review when it names another effect, and moves nothing', () => {
      given(planned(), started(0), succeeded(5))
        .when(9, record(1, told.success('re_2')))
        .then(['EvidenceRecorded', { verdict: 'succeeded', provider_operation_id: 're_2', contradicts: true }], ['ReviewRequested'])
        .thenStatus('succeeded')
        .thenReview('contradicting_evidence')
        .andAgainNothing();
    });

    it('adds the id to a success that had none, without a contradiction', () => {
      given(planned(policies.e), started(0), unknown(5), started(9, 2), succeeded(10, 2, null, 'already_done'))
        .when(11, record(1, told.success('re_1')))
        .then(['EvidenceRecorded', { contradicts: false }])
        .thenReview(null)
        .andAgainNothing();
    });
  });
});
