import { describe, expect, it } from 'vitest';
import { decide, nextStep, type OperationCommand } from '#domain';
import { fold, given, T0 } from '../../../support/decider-specification.js';
import {
  absent,
  cancel,
  conclude,
  decideReview,
  plan,
  present,
  record,
  recordCheck,
  refused,
  requestCheck,
  startAttempt,
  told,
} from '../support/commands.js';
import { cancelled, checked, evidence, failed, notSent, planned, reviewRequested, started, succeeded, unknown } from '../support/events.js';
import { HOUR, LEASE_MS, policies } from '../support/policies.js';

const terminal = {
  succeeded: [planned(), started(0), succeeded(5)],
  'succeeded by look-up': [planned(), started(0), unknown(5), checked(9, 'present'), succeeded(9, 1, 're_1', 'lookup')],
  failed: [planned(), started(0), failed(5)],
  'failed by the budget': [planned(), started(0), notSent(5), failed(9, 1, 'attempts_exhausted', 'budget')],
  cancelled: [planned(), cancelled(5)],
};

const anyCommand: OperationCommand[] = [
  plan(),
  cancel,
  startAttempt,
  conclude,
  requestCheck,
  ...[told.success(), told.success('re_2'), told.refusal, told.notReached, told.tooMany, told.alreadyDone, told.timeout].map((outcome) =>
    record(1, outcome),
  ),
  ...[present, absent, refused].map((check) => recordCheck(99, check)),
  decideReview({ decision: 'happened' }),
  decideReview({ decision: 'did_not_happen' }),
  decideReview({ decision: 'retry_once' }),
];

describe('the laws of an operation', () => {
  describe('law 1: a repeated command decides to nothing', () => {
    it.each([
      ['plan', [], plan()],
      ['cancel', [planned()], cancel],
      ['start', [planned()], startAttempt],
      ['success', [planned(), started(0)], record(1, told.success())],
      ['refusal', [planned(), started(0)], record(1, told.refusal)],
      ['not sent', [planned(), started(0)], record(1, told.tooMany)],
      ['unknown', [planned(), started(0)], record(1, told.timeout)],
      ['look-up', [planned(), started(0), unknown(5)], recordCheck(99, absent)],
      ['request of a look-up', [planned(), started(0), unknown(5)], requestCheck],
      ['decision', [planned(policies.f), started(0), unknown(5), reviewRequested(5)], decideReview({})],
      ['conclusion', [planned(), started(-LEASE_MS)], conclude],
    ] as const)('%s', (_, events, command) => {
      const outcome = given(...events).when(100, command);
      expect(outcome.decision.refusal).toBeUndefined();
      expect(outcome.decision).not.toEqual({ events: [] });
      outcome.andAgainNothing();
    });
  });

  it('law 2: an effect that is proven is never sent again, whatever state it is learnt in', () => {
    const proof = evidence(60_002, 1, {});
    const second = [planned(policies.c), started(0), unknown(5), checked(60_000, 'absent', { proof: true }), started(60_001, 2)];
    for (const after of [[], [notSent(60_005, 2)], [unknown(60_005, 2)]]) {
      const state = fold([...second, proof, ...after]);
      for (const laterMs of [0, LEASE_MS, HOUR, 1000 * HOUR]) {
        expect(['record', 'wait']).toContain(nextStep(state, T0 + 60_010 + laterMs).step);
      }
      expect(nextStep(state, T0 + HOUR)).toMatchObject({ step: 'record', events: [{ type: 'OperationSucceeded' }] });
    }
  });

  it.each(Object.entries(policies))('law 3, class %s: time alone never moves unknown out of unknown', (_, policy) => {
    const doubt = given(planned(policy), started(0, 1, HOUR), unknown(5)).state;
    for (const laterMs of [0, 1000, LEASE_MS, HOUR, 25 * HOUR, 72 * HOUR, 10_000 * HOUR]) {
      const step = nextStep(doubt, T0 + laterMs);
      const types = step.step === 'record' ? step.events.map(({ type }) => type) : [];
      expect(types.filter((type) => type !== 'ReviewRequested')).toEqual([]);
    }
  });

  describe.each(Object.entries(terminal))('law 4: %s does not move', (_, events) => {
    it.each(anyCommand)('at $type', (command) => {
      const { status } = given(...events).state;
      given(...events)
        .when(100, command)
        .thenStatus(status)
        .andAgainNothing();
    });
  });

  it('law 4: contradicting evidence opens one review, however much of it comes', () => {
    const contradicted = given(...terminal.failed)
      .when(9, record(1, told.success('re_1')))
      .thenReview('contradicting_evidence');
    contradicted
      .when(10, record(1, told.success('re_2')))
      .then(['EvidenceRecorded', { provider_operation_id: 're_2', contradicts: true }])
      .thenStatus('failed_final');
  });

  it('law 5: what an attempt that lost its lease tells never overwrites a newer attempt (public case 21)', () => {
    const second = [
      planned(policies.c),
      started(0),
      unknown(LEASE_MS, 1, { code: 'lease_expired' }),
      checked(60_000, 'absent', { proof: true }),
      started(60_001, 2),
    ];
    for (const outcome of [told.timeout, told.refusal, told.notReached, told.alreadyDone, told.success()]) {
      const late = given(...second)
        .when(60_002, record(1, outcome))
        .then(['EvidenceRecorded', { attempt: 1 }])
        .thenStatus('executing');
      expect(late.state).toMatchObject({ attemptId: 'attempt-2', leaseUntilMs: T0 + 60_001 + LEASE_MS, history: { count: 2 } });
      late
        .andAgainNothing()
        .when(60_005, record(2, told.success('re_2')))
        .thenStatus('succeeded');
    }
  });

  it.each(Object.entries(policies))('law 6, class %s: a doubt is asked about at a stated time, or has one open review', (_, policy) => {
    const doubt = given(planned(policy), started(0, 1, HOUR))
      .when(5, record(1, told.timeout))
      .thenStatus('unknown').state;
    const step = nextStep(doubt, T0 + 5);
    if (doubt.review) expect(step.step).toBe('none');
    else expect(step).toEqual({ step: 'wait', untilMs: (doubt as { nextCheckAtMs?: number }).nextCheckAtMs });
  });

  it('law 7: the attempt number is the fencing token; the worker’s name proves nothing', () => {
    const state = fold([planned(policies.c), started(0), unknown(5), checked(60_000, 'absent', { proof: true }), started(60_001, 2)]);
    // Both attempts are by worker w0; only the number tells them apart.
    expect(state).toMatchObject({ status: 'executing', worker: 'w0' });
    expect(decide(state, record(1, told.success()), T0 + 60_002)).toMatchObject({ events: [{ type: 'EvidenceRecorded' }] });
    expect(decide(state, record(2, told.success()), T0 + 60_002)).toMatchObject({ events: [{ type: 'OperationSucceeded' }] });
  });

  it('law 8: reading a stream again asks for nothing that was done before', () => {
    for (const events of Object.values(terminal)) expect(nextStep(fold(events), T0 + 1000 * HOUR)).toEqual({ step: 'none' });
    const underWay = [planned(), started(0)];
    expect(nextStep(fold(underWay), T0 + 1)).toEqual(nextStep(fold([...underWay]), T0 + 1));
    expect(nextStep(fold(underWay), T0 + 1).step).toBe('wait');
  });
});
