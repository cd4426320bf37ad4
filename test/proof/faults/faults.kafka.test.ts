import { expect, it } from 'vitest';
import { CRASH_POINTS } from '../../../proof/faults/crash-points.js';
import { kafkaBrokers, noKafka } from '../../support/kafka.js';
import { runFaults } from './support.js';

/** About 15 s where nothing else runs. */
const RELAY_TIMEOUT_MS = 300_000;

const own = CRASH_POINTS.filter(({ process }) => process === 'relay').map(({ name }) => name);

it.skipIf(noKafka())(
  'killed at every point of its own, the relay leaves nothing unpublished and nothing out of order (public case 36)',
  async () => {
    const args = ['--aimed', '--process', 'relay', '--parallel', '2'];
    const { code, summary, progress, pointsPassed } = await runFaults(args, { KAFKA_BROKERS: kafkaBrokers().join(',') });
    expect(summary, progress).toMatchObject({ duplicates: 0, lost: 0, violations: 0, failing_cases: [], skipped_cases: [] });
    expect(code).toBe(0);
    expect(own.filter((name) => !pointsPassed.has(name))).toEqual([]);
    expect(summary!.operations).toBeGreaterThan(0);
    expect(summary!.effects).toBeGreaterThan(0);
  },
  RELAY_TIMEOUT_MS,
);
