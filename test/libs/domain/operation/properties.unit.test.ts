import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decide,
  describeOperation,
  evolve,
  foldDecided,
  initialState,
  nextStep,
  OPERATION_STATUSES,
  type OperationEvent,
  type OperationState,
} from '#domain';
import { T0 } from '../../../support/decider-specification.js';
import { anyEvent, anyHistory, live } from '../support/arbitraries.js';
import { HOUR } from '../support/policies.js';
import { seeded } from '../support/seeded.js';

/** The states of the design and the ways between them. */
const LEGAL: Record<OperationState['status'], readonly OperationState['status'][]> = {
  absent: ['planned'],
  // To succeeded only by the evidence of an attempt that a restored log has lost (fault F17).
  planned: ['executing', 'failed_final', 'succeeded'],
  executing: ['succeeded', 'failed_final', 'failed_retryable', 'unknown'],
  // To unknown when the provider's key is forgotten; to succeeded when an older attempt turns out to have succeeded.
  failed_retryable: ['executing', 'failed_final', 'unknown', 'succeeded'],
  // To failed_retryable when the attempt that lost its lease tells late that nothing was sent.
  unknown: ['executing', 'succeeded', 'failed_final', 'failed_retryable'],
  succeeded: [],
  failed_final: [],
};

const encoded = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
const step = (state: OperationState, event: OperationEvent, nowMs: number) => foldDecided(state, [event], nowMs, 't1');

describe('any command on any reachable state', () => {
  it('yields events that fold to legal transitions, and the six states are all reached', () => {
    const reached = new Set<string>();
    seeded(
      fc.property(anyHistory, (history) => {
        for (const { before, decision, nowMs } of live(history)) {
          let state = before;
          for (const event of decision.refusal ? [] : decision.events) {
            const next = step(state, event, nowMs);
            if (next.status !== state.status) expect(LEGAL[state.status]).toContain(next.status);
            expect((next as { revision: number }).revision).toBe(state.status === 'absent' ? 0 : state.revision + 1);
            state = next;
            reached.add(state.status);
          }
        }
      }),
      { numRuns: 700, seed: 2026010501 },
    );
    expect([...reached].sort()).toEqual([...OPERATION_STATUSES].sort());
  });

  it('decides to nothing or to a refusal when repeated (law 1)', () => {
    seeded(
      fc.property(anyHistory, (history) => {
        for (const { command, nowMs, after } of live(history)) {
          const again = decide(after, command, nowMs);
          expect(again.refusal ? [] : again.events).toEqual([]);
        }
      }),
      { numRuns: 700, seed: 2026010502 },
    );
  });

  it('leaves nothing to conclude at the same instant', () => {
    seeded(
      fc.property(anyHistory, (history) => {
        for (const { decision, nowMs, after } of live(history)) {
          if (decision.refusal || decision.events.length === 0) continue;
          expect(nextStep(after, nowMs).step).not.toBe('record');
          expect(decide(after, { type: 'Conclude' }, nowMs)).toEqual({ events: [] });
        }
      }),
      { numRuns: 700, seed: 2026010503 },
    );
  });

  it('keeps at most one review open, and one on every doubt about which nobody is asked any more (law 6)', () => {
    seeded(
      fc.property(anyHistory, (history) => {
        for (const { before, decision, nowMs } of live(history)) {
          let state = before;
          for (const event of decision.refusal ? [] : decision.events) {
            if (event.type === 'ReviewRequested') expect(state.status !== 'absent' && state.review).toBeNull();
            state = step(state, event, nowMs);
          }
          if (state.status === 'unknown' && !decision.refusal && decision.events.length > 0) {
            if (nextStep(state, nowMs).step === 'none') expect(state.review).not.toBeNull();
          }
          if (state.status === 'failed_retryable' || state.status === 'executing') expect(state.review).toBeNull();
        }
      }),
      { numRuns: 700, seed: 2026010504 },
    );
  });

  it('never moves what is final (law 4)', () => {
    seeded(
      fc.property(anyHistory, (history) => {
        for (const { before, after } of live(history)) {
          if (before.status === 'succeeded' || before.status === 'failed_final') expect(after.status).toBe(before.status);
        }
      }),
      { numRuns: 700, seed: 2026010505 },
    );
  });

  it('lets an operation be shown', () => {
    seeded(
      fc.property(anyHistory, (history) => {
        for (const { after, nowMs } of live(history)) {
          if (after.status === 'absent') continue;
          const { guidance, status } = describeOperation(after, null, nowMs);
          if (status === 'succeeded' || status === 'failed_final') continue;
          expect(guidance.say).toContain('Do not say it succeeded or failed');
          expect(guidance.new_operation).toBe(false);
          expect(guidance.retry_after_seconds).toBeGreaterThanOrEqual(1);
        }
      }),
    );
  });
});

describe('time alone (law 3)', () => {
  it('never moves unknown out of unknown, and opens a review at most', () => {
    let doubts = 0;
    const anyTimes = fc.array(fc.integer({ min: 0, max: 100 * HOUR }), { minLength: 1, maxLength: 8 });
    seeded(
      fc.property(anyHistory, anyTimes, (history, times) => {
        for (const { decision, after, nowMs } of live(history)) {
          if (after.status !== 'unknown' || decision.refusal || decision.events.length === 0) continue;
          doubts++;
          let state: OperationState = after;
          for (const laterMs of times.toSorted((one, other) => one - other)) {
            const concluded = decide(state, { type: 'Conclude' }, nowMs + laterMs);
            const events = concluded.refusal ? [] : concluded.events;
            expect(events.filter(({ type }) => type !== 'ReviewRequested')).toEqual([]);
            state = foldDecided(state, events, nowMs + laterMs, 't1');
            expect(state.status).toBe('unknown');
          }
        }
      }),
      { numRuns: 700, seed: 2026010506 },
    );
    expect(doubts).toBeGreaterThan(500);
  });
});

describe('evolve', () => {
  it('never throws, whatever has been stored in whatever order', () => {
    seeded(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), (events) => {
        events.reduce<OperationState>((state, event, revision) => {
          const next = evolve(state, event, { tenant: 't1', atMs: T0 + revision, revision });
          // The next append expects the last revision, also behind an event of a newer version.
          if (next.status !== 'absent') expect(next.revision).toBe(revision);
          return next;
        }, initialState);
      }),
      { numRuns: 2000 },
    );
  });

  it('knows no more after an event of an unknown type', () => {
    const newer = { type: 'SomethingNewer', data: { surprise: true } } as unknown as OperationEvent;
    seeded(
      fc.property(anyHistory, (history) => {
        const { after, nowMs } = live(history).at(-1)!;
        if (after.status === 'absent') return;
        const next = evolve(after, newer, { tenant: 't1', atMs: nowMs + 5, revision: after.revision + 1 });
        expect(next).toEqual({ ...after, revision: after.revision + 1, updatedAtMs: nowMs + 5 });
      }),
      { numRuns: 200 },
    );
  });

  it('comes to the same from events and states that went through JSON', () => {
    seeded(
      fc.property(anyHistory, (history) => {
        let plain: OperationState = initialState;
        let stored: OperationState = initialState;
        for (const { decision, nowMs } of live(history)) {
          for (const event of decision.refusal ? [] : decision.events) {
            expect(encoded(event)).toEqual(event);
            plain = step(plain, event, nowMs);
            stored = step(encoded(stored), encoded(event), nowMs);
            expect(stored).toEqual(plain);
          }
          expect(nextStep(stored, nowMs)).toEqual(nextStep(plain, nowMs));
        }
      }),
    );
  });

  it('does not change the state that it is given', () => {
    seeded(
      fc.property(anyHistory, fc.array(anyEvent, { maxLength: 5 }), (history, events) => {
        const { after, nowMs } = live(history).at(-1)!;
        const before = encoded(after);
        for (const event of events) step(after, event, nowMs);
        expect(after).toEqual(before);
      }),
      { numRuns: 200 },
    );
  });
});
