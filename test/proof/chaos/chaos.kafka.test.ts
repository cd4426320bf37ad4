import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import type { Summary } from '../../../proof/chaos/summary.js';
import { noOwnCluster } from '../../support/kafka.js';

const PROGRAM = new URL('../../../dist/proof/chaos/main.js', import.meta.url).pathname;

async function runChaos(args: readonly string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [output, progress] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, output, progress };
}

/** A small one of what `npm run chaos` does for minutes: it shows that the program runs, breaks things and sees everything that it claims. */
it.skipIf(await noOwnCluster())(
  'half a minute of kills and partitions causes no effect twice and loses nothing that was acknowledged',
  async () => {
    const { code, output, progress } = await runChaos(['--operations', '500', '--minutes', '0.5', '--seed', '1']);
    expect(code, progress).toBe(0);
    const summary = JSON.parse(output.trimEnd().split('\n').at(-1)!) as Summary;
    expect(summary).toMatchObject({ duplicates: 0, lost: 0, violations: 0, not_checked: [] });
    expect(summary.operations).toBeGreaterThan(0);
    expect(summary.acknowledged).toBe(summary.operations);
    expect(summary.effects).toBeGreaterThan(0);
    expect(Object.values(summary.kills).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
    expect(summary.checked).toEqual(Array.from({ length: 17 }, (_, index) => `I${index + 1}`));
  },
  // Start and settling take about a minute; on a machine under load several times that.
  400_000,
);
