import { describe, expect, it } from 'vitest';
import { nextStep } from '#domain';
import { given, givenState, T0 } from '../../../support/decider-specification.js';
import { absent, inconclusive, plan, present, record, recordCheck, startAttempt, told } from '../support/commands.js';
import { HOUR, LANDING_MS, LEASE_MS, MINUTE, policies, SECOND, VISIBILITY_LAG_MS, type ProviderClass } from '../support/policies.js';

/** An operation whose first attempt was sent at 0 and timed out after two seconds. */
const timedOut = (name: ProviderClass) =>
  given()
    .when(0, plan(policies[name]))
    .when(0, startAttempt)
    .when(2 * SECOND, record(1, told.timeout));

const stepAt = (state: Parameters<typeof nextStep>[0], afterMs: number) => nextStep(state, T0 + afterMs).step;

/** The table of provider classes, one walk each. */
describe('provider class A: honours keys for long, look-up', () => {
  it('repeats under the same key until the key’s deadline', () => {
    timedOut('a')
      .when(3 * SECOND, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }])
      .when(4 * SECOND, record(2, told.success()))
      .thenStatus('succeeded');
  });

  it('looks up after the deadline, and sends no more', () => {
    const late = timedOut('a');
    late.when(24 * HOUR, startAttempt).thenNothing();
    expect(stepAt(late.state, 24 * HOUR)).toBe('look_up');
    late.when(24 * HOUR + 9, recordCheck(24 * HOUR, absent)).thenReview('key_retention_passed');
    late.when(24 * HOUR + 9, recordCheck(24 * HOUR, present)).thenStatus('succeeded');
  });

  it('looks up once the attempts are used up', () => {
    const used = timedOut('a')
      .when(3 * SECOND, startAttempt)
      .when(5 * SECOND, record(2, told.timeout))
      .when(9 * SECOND, startAttempt)
      .when(11 * SECOND, record(3, told.timeout));
    used.when(HOUR, startAttempt).thenNothing();
    expect(stepAt(used.state, HOUR)).toBe('look_up');
  });
});

describe('provider class B: honours keys for short, look-up', () => {
  it('looks up before it repeats', () => {
    const doubt = timedOut('b');
    expect(stepAt(doubt.state, 4 * SECOND)).toBe('look_up');
    doubt.when(4 * SECOND, startAttempt).thenNothing();
  });

  it('repeats when the look-ups told nothing and the key is still known', () => {
    let doubt = timedOut('b');
    for (let check = 1; check <= policies.b.lookup.max_checks; check++) {
      doubt = doubt.when(check * 3 * MINUTE + 9, recordCheck(check * 3 * MINUTE, inconclusive)).thenStatus('unknown');
    }
    doubt.thenReview(null);
    doubt.when(30 * MINUTE, startAttempt).then(['AttemptStarted', { attempt: 2 }]);
    doubt.when(59 * MINUTE, startAttempt).thenNothing();
    doubt.when(59 * MINUTE, { type: 'Conclude' }).thenReview('key_retention_passed');
  });
});

describe('provider class C: no keys, consistent look-up', () => {
  it('sends again only on proven absence: after the landing time, and no later', () => {
    const doubt = timedOut('c');
    doubt
      .when(2 * SECOND + LANDING_MS, recordCheck(2 * SECOND + LANDING_MS - 1, absent))
      .when(HOUR, startAttempt)
      .thenNothing();
    doubt
      .when(2 * SECOND + LANDING_MS + 9, recordCheck(2 * SECOND + LANDING_MS, absent))
      .when(2 * SECOND + LANDING_MS + 9, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }]);
  });

  it('finds what landed late', () => {
    timedOut('c')
      .when(20 * SECOND, recordCheck(19 * SECOND, absent))
      .when(40 * SECOND, recordCheck(39 * SECOND, present))
      .thenStatus('succeeded');
  });
});

describe('provider class D: no keys, look-up that sees late', () => {
  const settledMs = 2 * SECOND + LANDING_MS + VISIBILITY_LAG_MS;

  it('counts "absent" only after the settle window', () => {
    const doubt = timedOut('d');
    doubt
      .when(settledMs, recordCheck(settledMs - 1, absent))
      .when(HOUR, startAttempt)
      .thenNothing();
    doubt
      .when(settledMs + 9, recordCheck(settledMs, absent))
      .when(settledMs + 9, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }]);
  });

  it('makes its last look-up after the window, however early the ones before were', () => {
    let doubt = timedOut('d');
    let lastMs = 0;
    for (let checks = 0; doubt.state.status === 'unknown' && stepAt(doubt.state, lastMs) !== 'start_attempt'; checks++) {
      expect(checks).toBeLessThanOrEqual(policies.d.lookup.max_checks);
      const next = nextStep(doubt.state, T0 + lastMs);
      lastMs = next.step === 'wait' ? next.untilMs - T0 : lastMs;
      doubt = doubt.when(lastMs, recordCheck(lastMs, absent, 0));
    }
    expect(lastMs).toBeGreaterThanOrEqual(settledMs);
  });
});

describe('provider class E: rejects a repeated business reference', () => {
  it('repeats with the same reference; the rejection proves the first one', () => {
    timedOut('e')
      .when(3 * SECOND, startAttempt)
      .when(4 * SECOND, record(2, told.alreadyDone))
      .then(['OperationSucceeded', { evidence: 'already_done' }]);
  });

  it('goes to a person when no repetition was answered', () => {
    timedOut('e')
      .when(3 * SECOND, startAttempt)
      .when(5 * SECOND, record(2, told.timeout))
      .when(9 * SECOND, startAttempt)
      .when(11 * SECOND, record(3, told.timeout))
      .thenReview('attempts_exhausted');
  });
});

describe('provider class F: nothing', () => {
  it('makes one attempt; the doubt goes to a person at once', () => {
    timedOut('f')
      .thenStatus('unknown')
      .thenReview('no_lookup')
      .when(1000 * HOUR, startAttempt)
      .thenNothing();
  });

  it('still retries what was certainly not consumed', () => {
    given()
      .when(0, plan(policies.f))
      .when(0, startAttempt)
      .when(9, record(1, told.tooMany))
      .when(9 + SECOND, startAttempt)
      .then(['AttemptStarted', { attempt: 2 }]);
  });
});

describe.each(['a', 'b', 'c', 'd', 'e', 'f'] as const)('provider class %s', (name) => {
  it('answers, refuses, or consumes nothing like any other', () => {
    const sent = given().when(0, plan(policies[name])).when(0, startAttempt);
    sent.when(9, record(1, told.success())).thenStatus('succeeded');
    sent.when(9, record(1, told.refusal)).thenStatus('failed_final');
    sent.when(9, record(1, told.notReached)).thenStatus('failed_retryable');
  });

  it('never sends again because a lease has expired', () => {
    const lost = given().when(0, plan(policies[name])).when(0, startAttempt).when(LEASE_MS, { type: 'Conclude' }).thenStatus('unknown');
    expect(['wait', 'none']).toContain(stepAt(givenState(lost.state).state, LEASE_MS));
  });
});
