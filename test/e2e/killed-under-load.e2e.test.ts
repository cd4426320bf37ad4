import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { OperationResource } from '#domain';
import { isSettled, StandaloneProcess } from '../support/standalone-process.js';

const KILLS = 50;
const CALLERS = 8;
const CLASSES = ['a', 'b', 'c', 'd', 'e', 'f'];
/** Every so often the lab loses an answer, so that kills meet operations in every state. */
const MODES = ['OK', 'OK', 'OK', 'ACCEPT_HANG', 'ACCEPT_RESET', 'R429', 'OK'];
/** Every tenth kill takes the database along. */
const DATABASE_TOO_EVERY = 10;

let dataDir: string;
let onefold: StandaloneProcess | undefined;
beforeAll(() => {
  dataDir = StandaloneProcess.makeDataDir();
});
afterAll(async () => {
  await onefold?.kill();
  await StandaloneProcess.removeDataDir(dataDir);
});

it(
  `${KILLS} kills of the whole process group under load lose no acknowledged operation and cause no effect twice`,
  { timeout: 400_000 },
  async () => {
    const acknowledged = new Map<string, string>();
    let submitted = 0;
    for (let kill = 1; kill <= KILLS; kill++) {
      onefold = await StandaloneProcess.start(dataDir);
      const running = onefold;
      const enough = newSignal();
      // A different number each time, so that the kill meets another moment of the batches and feeds.
      const killAt = acknowledged.size + 5 + ((kill * 7) % 40);
      const callers = Array.from({ length: CALLERS }, async () => {
        // Until the kill: a refused connection or a cut answer ends a caller, as it would in life.
        for (;;) {
          const n = submitted++;
          const object = `kill-${n}`;
          try {
            const mode = MODES[n % MODES.length]!;
            if (mode !== 'OK') await running.script({ reference: object }, mode);
            const answer = await running.plan(CLASSES[n % CLASSES.length]!, object);
            if (answer.status !== 202) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
            acknowledged.set(answer.body.operation_id, object);
          } catch (error) {
            if (!(error instanceof TypeError)) throw error;
            return;
          }
          if (acknowledged.size >= killAt) enough.give();
        }
      });
      await enough.given;
      await onefold.kill();
      await Promise.all(callers);
      if (kill % DATABASE_TOO_EVERY === 0) killDatabase();
    }

    onefold = await StandaloneProcess.start(dataDir);
    try {
      const operations = new Map<string, OperationResource>();
      for (const operationId of acknowledged.keys()) operations.set(operationId, await onefold.until(operationId, isSettled));
      const { entries, references, effects, max_effects_per_reference } = await wholeLedger(onefold, acknowledged);
      expect(acknowledged.size).toBeGreaterThan(KILLS * 10);
      expect(max_effects_per_reference).toBe(1);
      expect(effects).toBe(references);
      for (const [operationId, object] of acknowledged) {
        const happened = entries.get(object) ?? 0;
        const { status } = operations.get(operationId)!;
        if (status === 'succeeded') expect([object, happened]).toEqual([object, 1]);
        if (status === 'failed_final') expect([object, happened]).toEqual([object, 0]);
      }
    } finally {
      expect(await onefold.stop()).toBe(0);
    }
  },
);

async function wholeLedger(onefold: StandaloneProcess, acknowledged: Map<string, string>) {
  const totals = (await onefold.ledger()) as unknown as { effects: number; references: number; max_effects_per_reference: number };
  const entries = new Map<string, number>();
  for (const object of acknowledged.values()) entries.set(object, (await onefold.ledger(object)).effects);
  return { ...totals, entries };
}

function killDatabase(): void {
  const pid = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0]!;
  execFileSync('kill', ['-KILL', pid]);
}

function newSignal(): { given: Promise<void>; give: () => void } {
  let give!: () => void;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give };
}
