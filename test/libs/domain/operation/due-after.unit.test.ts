import { describe, expect, it } from 'vitest';
import { dueAfter, nextStep, type OperationEvent } from '#domain';
import { fold, T0, type Dated } from '../../../support/decider-specification.js';
import {
  cancelled,
  checked,
  evidence,
  failed,
  notSent,
  planned,
  reviewDecided,
  reviewRequested,
  started,
  succeeded,
  unknown,
} from '../support/events.js';
import { LEASE_MS, policies } from '../support/policies.js';

const due = ([afterMs, event]: Dated) => {
  const at = dueAfter(event, T0 + afterMs);
  return typeof at === 'number' ? at - T0 : at;
};

describe('dueAfter', () => {
  it.each([
    ['OperationPlanned', planned(), 0],
    ['AttemptStarted', started(7), 7 + LEASE_MS],
    ['AttemptNotSent', notSent(7, 1, { retryMs: 900 }), 900],
    ['OutcomeUnknown', unknown(7, 1, { checkMs: 800 }), 800],
    ['OutcomeUnknown for a person', unknown(7, 1, { checkMs: null }), null],
    ['OutcomeChecked', checked(7, 'absent', { nextMs: 600 }), 600],
    ['OutcomeChecked for a person', checked(7, 'absent', { nextMs: null }), null],
    ['CheckRequested', [7, { type: 'CheckRequested', data: { reason: null } }] as Dated, 7],
    ['ReviewRequested', reviewRequested(7), null],
    ['ReviewDecided retry_once', reviewDecided(7, 'retry_once'), 7],
    ['ReviewDecided happened', reviewDecided(7, 'happened'), null],
    ['ReviewDecided acknowledge', reviewDecided(7, 'acknowledge'), null],
    ['OperationSucceeded', succeeded(7), null],
    ['OperationFailed', failed(7), null],
    ['OperationCancelled', cancelled(7), null],
    ['EvidenceRecorded', evidence(7, 1, {}), 'unchanged'],
    ['an unknown type', [7, { type: 'SomethingNewer', data: {} } as unknown as OperationEvent] as Dated, 'unchanged'],
  ] as const)('%s', (_, event, expected) => {
    expect(due(event)).toBe(expected);
  });

  it.each([
    ['planned', [planned()]],
    ['executing', [planned(), started(7)]],
    ['failed_retryable', [planned(), started(0), notSent(7)]],
    ['unknown', [planned(), started(0), unknown(7)]],
    ['unknown, looked up', [planned(), started(0), unknown(7), checked(1100, 'absent', { nextMs: 5000 })]],
    ['unknown, proven absent', [planned(), started(0), unknown(7), checked(99_000, 'absent', { proof: true, nextMs: 99_000 })]],
    ['unknown, retry granted', [planned(policies.e), started(0), unknown(7), reviewRequested(7), reviewDecided(8, 'retry_once')]],
  ] as const)('agrees with nextStep: %s has something to do then, and nothing before', (_, events) => {
    const [afterMs, event] = events.at(-1)!;
    const atMs = dueAfter(event, T0 + afterMs) as number;
    const state = fold(events);
    expect(['start_attempt', 'look_up', 'record']).toContain(nextStep(state, atMs).step);
    if (atMs > T0 + afterMs) expect(nextStep(state, atMs - 1)).toEqual({ step: 'wait', untilMs: atMs });
  });
});
