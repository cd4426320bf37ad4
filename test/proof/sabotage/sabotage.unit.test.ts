import { describe, expect, it } from 'vitest';
import { SABOTAGES, type Sabotage } from '../../../proof/sabotage/sabotages.js';
import { scenarioOf } from '../../../proof/simulation/scenario.js';
import { simulate } from '../../../proof/simulation/simulation.js';

/** What is planted shows within so many seeds: some bugs need a lost answer and a crash at the right moment. */
const SEEDS_MAX = 60;

async function firstCaught({ parts, caughtBy }: Sabotage): Promise<number | null> {
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const { report } = await simulate(scenarioOf(seed), parts);
    if (report.violations.some(({ invariant }) => caughtBy.includes(invariant))) return seed;
  }
  return null;
}

describe('the checker catches', () => {
  it.each(SABOTAGES)('$name', { timeout: 60_000 }, async (sabotage) => {
    const seed = await firstCaught(sabotage);
    expect(seed).not.toBeNull();
    // The same seed is clean without the bug, so that it is the bug that was caught.
    expect((await simulate(scenarioOf(seed!))).report.violations).toEqual([]);
  });

  it('at least as many planted bugs as were asked for', () => {
    expect(SABOTAGES.length).toBeGreaterThanOrEqual(12);
    expect(new Set(SABOTAGES.map(({ name }) => name)).size).toBe(SABOTAGES.length);
  });
});
