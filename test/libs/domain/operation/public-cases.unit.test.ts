import { describe, expect, it } from 'vitest';
import { guidanceFor, nextStep } from '#domain';
import { given, T0 } from '../../../support/decider-specification.js';
import {
  absent,
  conclude,
  decideReview,
  inconclusive,
  plan,
  present,
  record,
  recordCheck,
  startAttempt,
  told,
} from '../support/commands.js';
import { checked, notSent, planned, reviewRequested, started, unknown } from '../support/events.js';
import { HOUR, LEASE_MS, MINUTE, policies, SECOND, VISIBILITY_LAG_MS, LANDING_MS } from '../support/policies.js';

/** Public case 34: the provider forgets keys after an hour, with a minute's margin. */
const keyUntilMs = HOUR - MINUTE;

describe('public cases, as far as the core decides them', () => {
  it('17: an expired lease is looked up, and the effect found; one call', () => {
    given(planned(policies.d), started(0))
      .when(LEASE_MS, startAttempt)
      .thenNothing()
      .when(LEASE_MS, conclude)
      .thenStatus('unknown')
      .when(LEASE_MS + 2 * SECOND, recordCheck(LEASE_MS + SECOND, present))
      .thenStatus('succeeded');
    given(planned(policies.f), started(0)).when(LEASE_MS, conclude).thenStatus('unknown').thenReview('no_lookup');
  });

  it('18a: a claim whose worker died before it sent reaches a definite state by itself', () => {
    const askedMs = LEASE_MS + LANDING_MS + VISIBILITY_LAG_MS;
    given(planned(policies.d), started(0))
      .when(LEASE_MS, conclude)
      .when(askedMs + 9, recordCheck(askedMs, absent))
      .when(askedMs + 10, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }]);
  });

  it('18c: killed between answer and record, the effect is found by the look-up', () => {
    given(planned(policies.c), started(0))
      .when(LEASE_MS, conclude)
      .when(LEASE_MS + 9, recordCheck(LEASE_MS + 8, present))
      .thenStatus('succeeded');
  });

  it('18: a repetition meanwhile attaches instead of failing', () => {
    given(planned(), started(0)).when(9, plan()).thenNothing();
  });

  it('20: the blocked worker’s late answer is evidence beside the success that was found first', () => {
    given(planned(policies.c), started(0))
      .when(LEASE_MS, conclude)
      .when(LEASE_MS + 9, recordCheck(LEASE_MS + 8, present))
      .when(LEASE_MS + 10, record(1, told.success('re_1')))
      .thenNothing()
      .thenStatus('succeeded');
  });

  it('21: the zombie that wakes with a time-out leaves attempt 2, its lease and its result alone', () => {
    const second = given(
      planned(policies.c),
      started(0),
      unknown(LEASE_MS, 1, { code: 'lease_expired' }),
      checked(60_000, 'absent', { proof: true }),
      started(60_001, 2),
    );
    const woken = second.when(60_003, record(1, told.timeout));
    woken.then(['EvidenceRecorded', { attempt: 1, verdict: 'unknown', contradicts: false }]).thenStatus('executing');
    expect(woken.state).toMatchObject({ leaseUntilMs: T0 + 60_001 + LEASE_MS });
    woken.when(60_005, record(2, told.success())).thenStatus('succeeded').thenReview(null);
  });

  it('24: a review waits three days and longer; nothing times out, nothing is tried', () => {
    const waiting = given(planned(policies.f), started(0), unknown(5), reviewRequested(5));
    for (let day = 1; day <= 3; day++) {
      waiting
        .when(day * 24 * HOUR, conclude)
        .thenNothing()
        .thenStatus('unknown')
        .thenReview('no_lookup');
      waiting.when(day * 24 * HOUR, startAttempt).thenNothing();
    }
  });

  it('29: a saved 500 is not asked for again; it is looked up, then reviewed', () => {
    const savedError = given(planned(policies.a), started(0, 1, 23 * HOUR)).when(5, record(1, told.serverError));
    savedError.thenStatus('unknown').when(99_000, startAttempt).thenNothing();
    expect(nextStep(savedError.state, T0 + 99_000)).toEqual({ step: 'look_up' });
    const absentByProof = savedError.when(99_000, recordCheck(98_999, absent));
    absentByProof.thenReview('stored_error').when(99_001, startAttempt).thenNothing();
    given(planned({ ...policies.a, lookup: null, on_unknown: ['same_key_retry', 'review'] }), started(0, 1, 23 * HOUR))
      .when(5, record(1, told.serverError))
      .thenReview('stored_error');
  });

  it('31: with the look-up down for 25 hours it stays unknown and goes to a person; the same refund attaches', () => {
    let doubt = given(planned(policies.d), started(0)).when(5, record(1, told.timeout));
    let asks = 0;
    for (let atMs = 5; atMs <= 25 * HOUR; atMs += MINUTE) {
      if (nextStep(doubt.state, T0 + atMs).step === 'look_up') {
        asks++;
        doubt = doubt.when(atMs, recordCheck(atMs, inconclusive));
      } else doubt = doubt.when(atMs, conclude);
      doubt.thenStatus('unknown');
    }
    expect(asks).toBe(policies.d.lookup.max_checks);
    doubt
      .thenReview('lookup_inconclusive')
      .when(25 * HOUR, plan())
      .thenNothing();
    expect(guidanceFor(doubt.state, T0 + 25 * HOUR)).toMatchObject({ state: 'checking', new_operation: false });
  });

  describe('32: a look-up that lies', () => {
    const doubt = given(planned(policies.d), started(0), unknown(5));

    it('says "not found" at 5 s and "found" at 90 s: never sent again', () => {
      const early = doubt.when(5 * SECOND, recordCheck(5 * SECOND - 1, absent)).thenStatus('unknown');
      early.when(6 * SECOND, startAttempt).thenNothing();
      early.when(90 * SECOND, recordCheck(90 * SECOND - 1, present)).thenStatus('succeeded');
    });

    it.each(['http_403', 'http_500'])('answers %s: still unknown, asked again', (code) => {
      const asked = doubt
        .when(5 * SECOND, recordCheck(4 * SECOND, { verdict: 'inconclusive', code }))
        .thenStatus('unknown')
        .thenReview(null);
      expect(nextStep(asked.state, T0 + 5 * SECOND).step).toBe('wait');
    });

    it.each(['two_matches', 'other_amount'] as const)('finds %s: a person has to look', (anomaly) => {
      doubt
        .when(5 * SECOND, recordCheck(4 * SECOND, { anomaly }))
        .thenStatus('unknown')
        .thenReview(anomaly);
    });

    it('is not there at all: a person at once', () => {
      given(planned(policies.f), started(0)).when(5, record(1, told.timeout)).thenReview('no_lookup');
    });

    it('proves absence only after the key window: a person, no send', () => {
      given(planned(policies.b), started(0, 1, keyUntilMs), unknown(5))
        .when(keyUntilMs + 5, recordCheck(keyUntilMs + 1, absent))
        .thenReview('key_retention_passed')
        .when(keyUntilMs + 6, startAttempt)
        .thenNothing();
    });
  });

  describe('34: the provider has forgotten the key by the time we come back', () => {
    const resumedMs = 61 * MINUTE;

    it('a 429 at first: found out about, and sent again only when absent', () => {
      const resumed = given(planned(policies.b), started(0, 1, keyUntilMs), notSent(5, 1))
        .when(resumedMs, startAttempt)
        .thenNothing();
      const doubt = resumed.when(resumedMs, conclude).then(['OutcomeUnknown', { code: 'key_retention_passed' }]);
      expect(nextStep(doubt.state, T0 + resumedMs + SECOND)).toEqual({ step: 'look_up' });
      doubt.when(resumedMs + SECOND + 9, recordCheck(resumedMs + SECOND, present)).thenStatus('succeeded');
      doubt
        .when(resumedMs + SECOND + 9, recordCheck(resumedMs + SECOND, absent))
        .thenStatus('unknown')
        .when(resumedMs + SECOND + 10, startAttempt)
        .then(['AttemptStarted', { attempt: 2 }]);
    });

    it('a 429 at first, and nobody to ask: a person', () => {
      const blind = { ...policies.b, lookup: null, on_unknown: ['same_key_retry', 'review'] as const };
      given(planned(blind), started(0, 1, keyUntilMs), notSent(5, 1))
        .when(resumedMs, conclude)
        .thenReview('key_retention_passed');
    });

    it('an ambiguous send at first: looked up, then a person; never a send', () => {
      const forgotten = given(planned(policies.b), started(0, 1, keyUntilMs), unknown(5), checked(9, 'inconclusive'));
      expect(nextStep(forgotten.state, T0 + resumedMs)).toEqual({ step: 'look_up' });
      const atLast = [checked(resumedMs, 'inconclusive'), checked(resumedMs, 'inconclusive'), checked(resumedMs, 'inconclusive')];
      given(planned(policies.b), started(0, 1, keyUntilMs), unknown(5), checked(9, 'inconclusive'), ...atLast)
        .when(resumedMs, conclude)
        .thenReview('key_retention_passed')
        .when(resumedMs, startAttempt)
        .thenNothing();
    });

    it('shows safe_retry_until', () => {
      const { state } = given(planned(policies.b)).when(0, startAttempt);
      expect(guidanceFor(state, T0).safe_retry_until).toBe(new Date(T0 + keyUntilMs).toISOString());
    });
  });

  it('40f: approve and reject at once: one verdict, and the other is told', () => {
    given(planned(policies.f), started(0), unknown(5), reviewRequested(5))
      .when(9, decideReview({ decision: 'did_not_happen', decisionId: 'd-1' }))
      .when(9, decideReview({ decision: 'happened', decisionId: 'd-2' }))
      .thenRefused({ code: 'review_already_decided', winner: expect.objectContaining({ decision: 'did_not_happen' }) as never });
  });
});
