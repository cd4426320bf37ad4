import { expect, it } from 'vitest';
import { CRASH_POINTS } from '../../../proof/faults/crash-points.js';
import { runFaults } from './support.js';

/** Each case mostly waits for times to pass. */
const AT_ONCE = '4';
/** About 90 s where nothing else runs; the tests beside it and a slower machine make it several times that. */
const MATRIX_TIMEOUT_MS = 600_000;

const own = CRASH_POINTS.filter(({ process }) => process === 'standalone').map(({ name }) => name);

it(
  'killed at every point there is, no process causes an effect twice or loses what it acknowledged',
  async () => {
    const { code, summary, progress, pointsPassed } = await runFaults(['--aimed', '--process', 'standalone', '--parallel', AT_ONCE]);
    expect(summary, progress).toMatchObject({ duplicates: 0, lost: 0, violations: 0, failing_cases: [] });
    expect(code).toBe(0);
    expect(own.filter((name) => !pointsPassed.has(name))).toEqual([]);
    expect(summary!.operations).toBeGreaterThan(0);
    expect(summary!.effects).toBeGreaterThan(0);
  },
  MATRIX_TIMEOUT_MS,
);

it('refuses what it does not know, with the way to call it', async () => {
  const wrong = [
    ['--nonsense'],
    ['--process', 'nobody'],
    ['--class', 'z'],
    ['--point', 'nowhere'],
    ['--parallel', '0'],
    ['--process', 'relay', '--class', 'a'],
  ];
  for (const args of wrong) {
    const { code, progress } = await runFaults(args);
    expect([args, code]).toEqual([args, 2]);
    expect(progress).toContain('Usage: npm run faults');
  }
});
