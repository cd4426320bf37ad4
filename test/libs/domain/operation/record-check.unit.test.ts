import { describe, expect, it } from 'vitest';
import { nextStep } from '#domain';
import { given, T0 } from '../../../support/decider-specification.js';
import { absent, inconclusive, present, record, recordCheck, refused, requestCheck, told } from '../support/commands.js';
import { checked, failed, notSent, planned, reviewDecided, reviewRequested, started, succeeded, time, unknown } from '../support/events.js';
import { LANDING_MS, LEASE_MS, MINUTE, policies, VISIBILITY_LAG_MS } from '../support/policies.js';

const timedOut = [planned(), started(0), unknown(5)];

describe('RecordCheck present', () => {
  it('finishes the operation with the provider’s id and result', () => {
    given(...timedOut)
      .when(1010, recordCheck(1005, present))
      .then(
        ['OutcomeChecked', { verdict: 'present', proof: false, next_check_at: null }],
        ['OperationSucceeded', { provider_operation_id: 're_1', result: 'sealed-result', evidence: 'lookup' }],
      )
      .thenStatus('succeeded')
      .andAgainNothing();
  });

  it('closes the review of the doubt that it settles', () => {
    given(...timedOut, reviewRequested(9, 'lookup_inconclusive'))
      .when(11, requestCheck)
      .when(13, recordCheck(12, present))
      .thenReview(null);
  });

  it('law 1: decides to nothing where the same effect is recorded', () => {
    given(planned(), started(0), succeeded(5)).when(9, recordCheck(8, present)).thenNothing();
  });

  it('law 4: opens a review where the operation was closed as failed', () => {
    given(planned(), started(0), failed(5))
      .when(9, recordCheck(8, present))
      .then(['EvidenceRecorded', { kind: 'lookup', verdict: 'succeeded', contradicts: true }], ['ReviewRequested'])
      .thenStatus('failed_final')
      .andAgainNothing();
  });

  it('law 2: overtaken by "not sent", still keeps the operation from being sent again', () => {
    given(planned(), started(0), unknown(LEASE_MS, 1, { code: 'lease_expired' }), notSent(LEASE_MS + 5))
      .when(LEASE_MS + 9, recordCheck(LEASE_MS + 4, present))
      .thenStatus('succeeded')
      .andAgainNothing();
  });
});

describe('RecordCheck refused', () => {
  it('ends the operation: the provider knows it, and refused it', () => {
    given(...timedOut)
      .when(1010, recordCheck(1005, refused))
      .then(['OutcomeChecked', { verdict: 'refused' }], ['OperationFailed', { code: 'declined', evidence: 'lookup' }])
      .thenStatus('failed_final')
      .andAgainNothing();
  });
});

describe('RecordCheck absent', () => {
  /** Sent at most until 5 ms, when the time-out was recorded. */
  const provableMs = (name: 'c' | 'd') => 5 + LANDING_MS + (name === 'd' ? VISIBILITY_LAG_MS : 0);

  it.each(['c', 'd'] as const)('class %s: proves nothing while a sent request may still land or be invisible', (name) => {
    given(planned(policies[name]), started(0), unknown(5))
      .when(provableMs(name) + 500, recordCheck(provableMs(name) - 1, absent))
      .then(['OutcomeChecked', { verdict: 'absent', proof: false }])
      .thenStatus('unknown')
      .andAgainNothing();
  });

  it.each(['c', 'd'] as const)('class %s: proves absence once asked after that, and the operation is sent again', (name) => {
    const outcome = given(planned(policies[name]), started(0), unknown(5))
      .when(provableMs(name), recordCheck(provableMs(name), absent))
      .then(['OutcomeChecked', { verdict: 'absent', proof: true, next_check_at: time(provableMs(name)) }])
      .thenStatus('unknown')
      .andAgainNothing();
    expect(nextStep(outcome.state, T0 + provableMs(name))).toEqual({ step: 'start_attempt' });
  });

  it('counts from the end of the lease when the worker vanished: it may have sent until then', () => {
    const vanished = given(planned(policies.c), started(0), unknown(LEASE_MS + 50, 1, { code: 'lease_expired' }));
    vanished.when(99_000, recordCheck(LEASE_MS + LANDING_MS - 1, absent)).then(['OutcomeChecked', { proof: false }]);
    vanished.when(99_000, recordCheck(LEASE_MS + LANDING_MS, absent)).then(['OutcomeChecked', { proof: true }]);
  });

  it('keeps the last look-up for a moment that can prove something', () => {
    given(planned(), started(0), unknown(5), checked(1000, 'absent'), checked(2000, 'absent'))
      .when(3000, recordCheck(2999, absent))
      .then(['OutcomeChecked', { proof: false, next_check_at: time(provableMs('d')) }]);
  });

  it('proven after all attempts ends the operation: nothing was consumed', () => {
    const thrice = [started(0), notSent(1), started(1001, 2), notSent(1002, 2), started(9000, 3), unknown(9005, 3)];
    given(planned(), ...thrice)
      .when(200_000, recordCheck(199_999, absent))
      .then(['OutcomeChecked', { proof: true }], ['OperationFailed', { code: 'attempts_exhausted' }])
      .andAgainNothing();
  });

  it('proven after the provider forgot the key goes to a person where a send was ambiguous', () => {
    given(planned(policies.b), started(0, 1, MINUTE), unknown(5))
      .when(2 * MINUTE, recordCheck(2 * MINUTE - 1, absent))
      .then(['OutcomeChecked', { proof: true }], ['ReviewRequested', { reason: 'key_retention_passed' }]);
  });

  it('leaves an open review to the person', () => {
    given(...timedOut, reviewRequested(9, 'lookup_inconclusive'))
      .when(200_000, recordCheck(199_999, absent))
      .then(['OutcomeChecked', { proof: true, next_check_at: null }])
      .thenStatus('unknown')
      .thenReview('lookup_inconclusive')
      .andAgainNothing();
  });
});

describe('RecordCheck inconclusive', () => {
  it('is repeated with a growing delay, half of it fixed', () => {
    const { initial_ms } = policies.d.lookup.backoff;
    given(...timedOut)
      .when(1010, recordCheck(1005, inconclusive, 0))
      .then(['OutcomeChecked', { code: 'http_500', next_check_at: time(1010 + initial_ms / 2) }])
      .andAgainNothing();
    given(...timedOut, checked(1010, 'inconclusive'))
      .when(3000, recordCheck(2999, inconclusive, 0.5))
      .then(['OutcomeChecked', { next_check_at: time(3000 + initial_ms / 2 + initial_ms) }]);
  });

  it('goes to a person when the look-ups are used up; nothing is sent', () => {
    const thrice = [checked(1000, 'inconclusive'), checked(2000, 'inconclusive'), checked(3000, 'absent')];
    given(...timedOut, ...thrice)
      .when(9000, recordCheck(8999, inconclusive))
      .then(['OutcomeChecked'], ['ReviewRequested', { reason: 'lookup_inconclusive' }])
      .thenStatus('unknown')
      .andAgainNothing();
  });

  it.each(['two_matches', 'other_amount'] as const)('public case 32: %s goes to a person at once', (anomaly) => {
    given(...timedOut)
      .when(1010, recordCheck(1005, { verdict: 'inconclusive', anomaly }))
      .then(['OutcomeChecked', { anomaly }], ['ReviewRequested', { reason: anomaly }])
      .andAgainNothing();
  });

  it.each(['present', 'refused', 'absent'] as const)('an anomaly settles nothing, also when the verdict is %s', (verdict) => {
    given(...timedOut)
      .when(200_000, recordCheck(199_999, { ...present, verdict, anomaly: 'two_matches' }))
      .then(['OutcomeChecked', { verdict: 'inconclusive', proof: false }], ['ReviewRequested', { reason: 'two_matches' }])
      .thenStatus('unknown');
  });

  it('overtaken by the outcome, changes nothing', () => {
    given(planned(), started(0), succeeded(5)).when(9, recordCheck(8, inconclusive)).thenNothing();
    given(planned(), started(0), failed(5)).when(9, recordCheck(8, absent)).thenNothing();
  });
});

describe('RecordCheck of an older question', () => {
  it('law 1: that found nothing spends no second look-up', () => {
    given(...timedOut, checked(1000, 'inconclusive', { nextMs: 5000 }))
      .when(1500, recordCheck(900, absent))
      .thenNothing();
  });

  it('still counts when it found the effect', () => {
    given(...timedOut, checked(1000, 'absent', { nextMs: 5000 }))
      .when(1500, recordCheck(900, present))
      .thenStatus('succeeded');
  });

  it('does not prove absence for what was sent after it was asked', () => {
    given(planned(policies.c), started(0), unknown(5), checked(60_000, 'absent', { proof: true }), started(60_001, 2), unknown(60_005, 2))
      .when(60_010, recordCheck(59_000, absent))
      .then(['OutcomeChecked', { proof: false }]);
  });
});

describe('RequestCheck', () => {
  it('has the provider asked now, also with a review open', () => {
    const outcome = given(...timedOut, reviewRequested(9, 'lookup_inconclusive'))
      .when(11, requestCheck)
      .then(['CheckRequested', { reason: 'the customer calls' }])
      .andAgainNothing();
    expect(nextStep(outcome.state, T0 + 11)).toEqual({ step: 'look_up' });
  });

  it('is refused where nothing is in doubt, or the provider cannot be asked', () => {
    given(planned()).when(1, requestCheck).thenRefused({ code: 'not_unknown' });
    given(planned(), started(0), succeeded(5)).when(9, requestCheck).thenRefused({ code: 'not_unknown' });
    given(planned(policies.f), started(0), unknown(5), reviewRequested(5)).when(9, requestCheck).thenRefused({ code: 'no_lookup' });
  });

  it('comes before a retry that a person granted', () => {
    const granted = [planned(policies.b), started(0, 1, 90_000), unknown(5), reviewRequested(9), reviewDecided(10, 'retry_once')];
    const { state } = given(...granted).when(11, requestCheck);
    expect(nextStep(state, T0 + 11)).toEqual({ step: 'look_up' });
  });

  it('is over once an outcome is recorded', () => {
    given(...timedOut)
      .when(6, requestCheck)
      .when(9, record(1, told.success()))
      .thenStatus('succeeded');
  });
});
