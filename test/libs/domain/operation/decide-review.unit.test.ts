import { describe, expect, it } from 'vitest';
import { decide, foldDecided, nextStep, type OperationState } from '#domain';
import { fold, given, T0 } from '../../../support/decider-specification.js';
import { absent, conclude, decideReview, record, recordCheck, requestCheck, startAttempt, told } from '../support/commands.js';
import { evidence, failed, planned, reviewDecided, reviewRequested, started, succeeded, unknown } from '../support/events.js';
import { HOUR, policies } from '../support/policies.js';

/** Revisions 0-3. */
const inReview = [planned(policies.f), started(0), unknown(5), reviewRequested(5)];
const inReviewWithKey = [planned(policies.b), started(0, 1, HOUR), unknown(5), reviewRequested(5, 'lookup_inconclusive')];
const contradicted = [
  planned(),
  started(0),
  failed(5),
  evidence(9, 1, { contradicts: true }),
  reviewRequested(9, 'contradicting_evidence'),
];

describe('DecideReview', () => {
  it('happened: succeeds on the person’s word', () => {
    given(...inReview)
      .when(9, decideReview({ decision: 'happened' }))
      .then(
        ['ReviewDecided', { decision: 'happened', decision_id: 'd-1', actor: 'operator-1', based_on_revision: 3 }],
        ['OperationSucceeded', { provider_operation_id: 're_1', evidence: 'person' }],
      )
      .thenStatus('succeeded')
      .thenReview(null)
      .andAgainNothing();
  });

  it('did_not_happen: fails on the person’s evidence', () => {
    given(...inReview)
      .when(9, decideReview({ decision: 'did_not_happen' }))
      .then(['ReviewDecided', { evidence: 'statement of 5 January' }], ['OperationFailed', { code: 'did_not_happen', evidence: 'person' }])
      .thenStatus('failed_final')
      .andAgainNothing();
  });

  it('give_up: closes without an answer', () => {
    given(...inReview)
      .when(9, decideReview({ decision: 'give_up', evidence: null, providerOperationId: null }))
      .then(['ReviewDecided'], ['OperationFailed', { code: 'given_up', evidence: 'person' }])
      .andAgainNothing();
  });

  it('retry_once: sends once more with the same key, while the provider still knows it', () => {
    given(...inReviewWithKey)
      .when(9, decideReview({ decision: 'retry_once' }))
      .then(['ReviewDecided', { decision: 'retry_once' }])
      .thenStatus('unknown')
      .thenReview(null)
      .andAgainNothing()
      .when(10, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }]);
  });

  it('retry_once: goes back to a person when the key was forgotten before it could be sent', () => {
    given(...inReviewWithKey, reviewDecided(9, 'retry_once'))
      .when(HOUR, conclude)
      .then(['ReviewRequested', { reason: 'retry_no_longer_safe' }])
      .andAgainNothing();
  });

  it('retry_once: is one; another doubt goes to a person again', () => {
    given(...inReviewWithKey, reviewDecided(9, 'retry_once'), started(10, 2, HOUR), unknown(15, 2))
      .when(15, conclude)
      .thenNothing();
    given(planned(policies.e), started(0), unknown(5), reviewRequested(5), reviewDecided(9, 'retry_once'), started(10, 2))
      .when(12, record(2, told.success()))
      .thenStatus('succeeded');
  });

  describe('is not allowed:', () => {
    it.each([
      ['happened with neither an id nor evidence', inReview, { decision: 'happened', providerOperationId: null, evidence: null }],
      ['happened with blanks', inReview, { decision: 'happened', providerOperationId: '', evidence: ' ' }],
      ['did_not_happen without evidence', inReview, { decision: 'did_not_happen', evidence: null }],
      ['did_not_happen with a blank', inReview, { decision: 'did_not_happen', evidence: '' }],
      ['retry_once where the provider honours no key', inReview, { decision: 'retry_once' }],
      ['acknowledge while the outcome is unknown', inReview, { decision: 'acknowledge' }],
      ['happened for what is final', contradicted, { decision: 'happened', expectedRevision: 4 }],
      ['give_up for what is final', contradicted, { decision: 'give_up', expectedRevision: 4 }],
    ] as const)('%s', (_, events, over) => {
      given(...events)
        .when(9, decideReview(over))
        .thenRefused({ code: 'decision_not_allowed' });
    });

    it('retry_once after the provider forgot the key', () => {
      given(...inReviewWithKey)
        .when(HOUR, decideReview({ decision: 'retry_once' }))
        .thenRefused({ code: 'decision_not_allowed' });
    });
  });

  it('happened needs an id or evidence, not both', () => {
    given(...inReview)
      .when(9, decideReview({ decision: 'happened', providerOperationId: null }))
      .thenStatus('succeeded');
    given(...inReview)
      .when(9, decideReview({ decision: 'happened', providerOperationId: '', evidence: 'statement' }))
      .thenStatus('succeeded');
    given(...inReview)
      .when(9, decideReview({ decision: 'happened', evidence: null }))
      .thenStatus('succeeded');
  });

  it('retry_once is allowed without a key once absence is proven', () => {
    given(planned(), started(0), unknown(5), reviewRequested(5, 'lookup_inconclusive'))
      .when(6, requestCheck)
      .when(200_000, recordCheck(199_999, absent))
      .when(200_001, decideReview({ decision: 'retry_once', expectedRevision: 5 }))
      .then(['ReviewDecided']);
  });

  it('acknowledge closes the review of a contradiction; what is final does not move', () => {
    given(...contradicted)
      .when(20, decideReview({ decision: 'acknowledge', expectedRevision: 4 }))
      .then(['ReviewDecided', { decision: 'acknowledge' }])
      .thenStatus('failed_final')
      .thenReview(null)
      .andAgainNothing();
  });

  it('needs the revision that it was based on', () => {
    given(...inReview)
      .when(9, decideReview({ expectedRevision: 2 }))
      .thenRefused({ code: 'revision_mismatch', revision: 3 });
    given(...inReview)
      .when(9, decideReview({ expectedRevision: 4 }))
      .thenRefused({ code: 'revision_mismatch', revision: 3 });
  });

  it('needs an open review', () => {
    given(planned())
      .when(9, decideReview({ expectedRevision: 0 }))
      .thenRefused({ code: 'no_open_review' });
    given(planned(), started(0), succeeded(5))
      .when(9, decideReview({ expectedRevision: 2 }))
      .thenRefused({ code: 'no_open_review' });
  });

  describe('public case 40f', () => {
    it('of ten parallel decisions one wins, and each other is told the winner', () => {
      let state: OperationState = fold(inReview);
      const decisions = Array.from({ length: 10 }, (_, n) =>
        decideReview({ decision: n % 2 ? 'did_not_happen' : 'happened', decisionId: `d-${n}`, actor: `operator-${n}` }),
      );
      const answers = decisions.map((command) => {
        const decision = decide(state, command, T0 + 9);
        if (!decision.refusal) state = foldDecided(state, decision.events, T0 + 9, 't1');
        return decision.refusal;
      });
      expect(answers[0]).toBeUndefined();
      for (const refusal of answers.slice(1)) {
        expect(refusal).toMatchObject({
          code: 'review_already_decided',
          winner: { decisionId: 'd-0', actor: 'operator-0', decision: 'happened' },
        });
      }
      expect(state.status).toBe('succeeded');
    });

    it('the same decision id again gets the same answer; another verdict under it does not', () => {
      const decided = given(...inReview).when(9, decideReview({ decisionId: 'd-7' }));
      decided.when(10, decideReview({ decisionId: 'd-7' })).thenNothing();
      decided.when(10, decideReview({ decisionId: 'd-7', decision: 'give_up' })).thenRefused({ code: 'review_already_decided' });
      decided.when(10, decideReview({ decisionId: null })).thenRefused({ code: 'review_already_decided' });
    });

    it('the same decision id again gets the same answer, also when another review is open by now', () => {
      const again = [...inReviewWithKey, reviewDecided(9, 'retry_once'), started(10, 2, HOUR), unknown(15, 2), reviewRequested(16)];
      given(...again)
        .when(20, decideReview({ decision: 'retry_once', decisionId: 'd-1' }))
        .thenNothing()
        .thenReview('no_lookup');
      given(...again)
        .when(20, decideReview({ decision: 'retry_once', decisionId: 'd-2' }))
        .thenRefused({ code: 'revision_mismatch', revision: 7 });
    });
  });

  it('F21: loses to evidence that came first', () => {
    given(...inReview)
      .when(8, record(1, told.success()))
      .when(9, decideReview({ decision: 'did_not_happen' }))
      .thenRefused({ code: 'no_open_review' })
      .thenStatus('succeeded');
  });

  it('waits for the person and for nothing else', () => {
    expect(nextStep(fold(inReview), T0 + 1000 * HOUR)).toEqual({ step: 'none' });
  });
});
