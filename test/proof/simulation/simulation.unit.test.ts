import { describe, expect, it } from 'vitest';
import { SABOTAGES } from '../../../proof/sabotage/sabotages.js';
import { readArguments, UsageError } from '../../../proof/simulation/arguments.js';
import { scenarioOf, type Scenario } from '../../../proof/simulation/scenario.js';
import { shrink, withSteps } from '../../../proof/simulation/shrink.js';
import { simulate } from '../../../proof/simulation/simulation.js';

describe('the simulated system', () => {
  it('keeps every invariant over 500 seeds', { timeout: 300_000 }, async () => {
    const broken: string[] = [];
    for (let seed = 1; seed <= 500; seed++) {
      const { report } = await simulate(scenarioOf(seed));
      broken.push(...report.violations.map(({ invariant, what }) => `seed ${seed}: ${invariant} ${what}`));
      expect(report.notChecked).toEqual([]);
    }
    expect(broken).toEqual([]);
  });

  it('does the same for the same seed, and something else for another', async () => {
    const [one, again, other] = [await simulate(scenarioOf(7)), await simulate(scenarioOf(7)), await simulate(scenarioOf(8))];
    expect(one.trace).toEqual(again.trace);
    expect(one.trace).not.toEqual(other.trace);
  });

  it.each([750, 1525])('seed %i: an attempt that was provably not sent uses up no grant of a person', async (seed) => {
    const { report, facts } = await simulate(scenarioOf(seed));
    expect(report.violations).toEqual([]);
    const types = [...facts.log!].map(({ event }) => event.type);
    expect(types).toContain('ReviewDecided');
  });

  it('never repeats a request that a provider without stored errors answered with 500, where nobody can be asked', async () => {
    const scenario: Scenario = {
      seed: 1,
      nodes: 1,
      operations: [{ providerClass: 'b', tenant: 'acme' }],
      steps: [
        { kind: 'calls', atMs: 0, op: 0, scripts: [{ mode: 'SAVED_500', travelMs: 5, landMs: 0, effect: true }] },
        { kind: 'look_ups', atMs: 0, op: 0, faults: ['403', '403', '403', '403', '403'] },
        { kind: 'submit', atMs: 100, op: 0, variant: 'same', answersLost: 0 },
      ],
    };
    const { report, effects, facts } = await simulate(scenario);
    expect(report.violations).toEqual([]);
    expect(effects).toBe(1);
    expect(facts.view!.map(({ state }) => [state.status, state.review !== null])).toEqual([['unknown', true]]);
  });
});

describe('the shrinker', () => {
  it('leaves only steps that the violation needs', { timeout: 60_000 }, async () => {
    const { parts } = SABOTAGES.find(({ name }) => name === 'the provider key is minted per attempt')!;
    const scenario = scenarioOf(3);
    const found = await simulate(scenario, parts);
    expect(found.report.violations).not.toEqual([]);
    const { result, kept } = await shrink(scenario, found, parts);
    expect(result.report.violations).not.toEqual([]);
    expect(kept.length).toBeLessThan(scenario.steps.length);
    // A call under a foreign key needs nothing but a submission.
    expect(kept.map((index) => scenario.steps[index]!.kind)).toEqual(['submit']);
    const again = await simulate(withSteps(scenario, kept), parts);
    expect(again.trace).toEqual(result.trace);
  });
});

describe('the arguments', () => {
  it.each([
    [[], { seeds: 100, seed: 1, steps: null }],
    [['--seeds', '5000'], { seeds: 5000, seed: 1, steps: null }],
    [['--seed', '9'], { seeds: 1, seed: 9, steps: null }],
    [['--seed', '9', '--steps', '1,4'], { seeds: 1, seed: 9, steps: [1, 4] }],
  ])('%j are understood', (args, expected) => {
    expect(readArguments(args)).toEqual(expected);
  });

  it.each([[['--sedes', '5']], [['--seeds', '0']], [['--seeds', 'many']], [['5000']], [['--steps', '1']], [['--seed', '-1']]])(
    '%j are refused',
    (args) => {
      expect(() => readArguments(args)).toThrow(UsageError);
    },
  );
});
