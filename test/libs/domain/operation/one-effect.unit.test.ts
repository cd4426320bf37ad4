import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextStep } from '#domain';
import { T0 } from '../../../support/decider-specification.js';
import { PROVIDER_CLASSES } from '../support/policies.js';
import { seeded } from '../support/seeded.js';
import { anyScript, simulate, type SimulatedRun } from '../support/simulated-dispatcher.js';

const FAR_AHEAD_MS = T0 + 10_000 * 3_600_000;

/** The whole core against a provider that is as bad as its class allows, with lost answers, late landings, dead workers and long pauses. */
describe.each(PROVIDER_CLASSES)('provider class %s', (providerClass) => {
  const reached = new Map<string, number>();
  let seed = 20260105;
  const check = (verify: (run: SimulatedRun) => void) => {
    seeded(
      fc.property(anyScript, (script) => {
        const run = simulate(providerClass, script);
        reached.set(run.state.status, (reached.get(run.state.status) ?? 0) + 1);
        verify(run);
      }),
      // Other scripts for each invariant, the same ones each time.
      { numRuns: 600, seed: seed++ },
    );
  };

  it('I1: causes at most one effect', () => {
    check(({ effects }) => expect(effects).toBeLessThanOrEqual(1));
  });

  it('I3: ends, in bounded steps: final, or unknown with one open review', () => {
    check(({ state, events, steps }) => {
      expect(steps).toBeLessThan(200);
      expect(nextStep(state, FAR_AHEAD_MS)).toEqual({ step: 'none' });
      const isFinal = state.status === 'succeeded' || state.status === 'failed_final';
      expect(isFinal || (state.status === 'unknown' && state.review !== null)).toBe(true);
      const requested = events.filter(({ type }) => type === 'ReviewRequested').length;
      const decided = events.filter(({ type }) => type === 'ReviewDecided').length;
      if (state.review) expect(requested).toBeGreaterThan(decided);
    });
  });

  it('I4: tells the truth', () => {
    check(({ state, effects }) => {
      if (state.status === 'succeeded') expect(effects).toBe(1);
      if (state.status === 'failed_final') expect(effects).toBe(0);
    });
  });

  it('never finds a contradiction to what it concluded', () => {
    check(({ events }) => {
      expect(events.filter((event) => event.type === 'EvidenceRecorded' && event.data.contradicts)).toEqual([]);
    });
  });

  it('I5: sends again after a doubt only on evidence, on the key or on a person’s word', () => {
    check(({ events }) => {
      for (const [index, event] of events.entries()) {
        if (event.type !== 'AttemptStarted' || event.data.attempt === 1) continue;
        const since = events.slice(
          events.findLastIndex((earlier, at) => at < index && earlier.type === 'AttemptStarted'),
          index,
        );
        const ambiguous = since.some(({ type }) => type === 'OutcomeUnknown');
        const proven = since.some((earlier) => earlier.type === 'OutcomeChecked' && earlier.data.proof);
        const granted = since.some((earlier) => earlier.type === 'ReviewDecided' && earlier.data.decision === 'retry_once');
        const notSent = since.some(({ type }) => type === 'AttemptNotSent');
        const byKey = providerClass === 'a' || providerClass === 'b' || providerClass === 'e';
        expect(!ambiguous || proven || granted || notSent || byKey).toBe(true);
      }
    });
  });

  it('reached what it can reach', () => {
    expect([...reached.keys()].sort()).toEqual(['failed_final', 'succeeded', 'unknown']);
  });
});
