import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LabClient } from './lab-client.js';

const program = fileURLToPath(new URL('../../../dist/apps/provider-lab/src/main.js', import.meta.url));

let folder: string;
let running: ChildProcess[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'onefold-lab-'));
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((child) => end(child, 'SIGKILL')));
  rmSync(folder, { recursive: true });
});

function launch(environment: Record<string, string> = {}): ChildProcess {
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env.PATH, ONEFOLD_DATA_DIR: folder, LAB_PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  return child;
}

/** The ready line, as the only line on standard output. */
async function ready(child: ChildProcess): Promise<{ ready: boolean; lab: string; smtp: string; ledger: string }> {
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    child.once('exit', (code) => reject(new Error(`the lab ended with ${code}`)));
  });
  return JSON.parse(line);
}

function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve) => {
    child.once('exit', (code) => resolve(code));
    child.kill(signal);
  });
}

it('loses no answered call and no seen effect when it is killed in the middle of many', async () => {
  for (let round = 1; round <= 3; round += 1) {
    const child = launch();
    const client = new LabClient((await ready(child)).lab);
    const answered: { key: string; id: string }[] = [];
    const callers = Array.from({ length: 16 }, async (_, caller) => {
      for (let call = 0; ; call += 1) {
        const key = `k-${round}-${caller}-${call}`;
        const answer = await client.pay('a', key, `ref-${key}`).catch(() => null);
        if (answer === null) return;
        answered.push({ key, id: answer.body.id });
        // Killed from inside the stream of answers, so that writes are under way.
        if (answered.length === 300) child.kill('SIGKILL');
      }
    });
    await Promise.all(callers);
    await end(child, 'SIGKILL');
    const next = launch();
    const after = new LabClient((await ready(next)).lab);
    for (const { key, id } of answered) {
      expect(await after.ledger(key)).toMatchObject({ calls: 1, effects: 1, entries: [{ id }] });
    }
    expect(await after.ledger()).toMatchObject({ max_effects_per_reference: 1 });
    await end(next, 'SIGKILL');
  }
});

it('lands late what was planned when it was killed, once', async () => {
  const first = launch();
  const client = new LabClient((await ready(first)).lab);
  await client.script({ match: { reference: 'k-1' }, mode: 'LATE_LANDING', delay_ms: 1_000 });
  const call = client.payAndLose('d', 'k-1');
  expect(await client.ledgerWithCalls('k-1', 1)).toMatchObject({ effects: 0 });
  await end(first, 'SIGKILL');
  await call;
  const second = launch();
  const after = new LabClient((await ready(second)).lab);
  expect(await after.ledgerWithEffects('k-1', 1)).toMatchObject({ calls: 1, effects: 1 });
  await end(second, 'SIGKILL');
  const third = launch();
  expect(await new LabClient((await ready(third)).lab).ledger('k-1')).toMatchObject({ calls: 1, effects: 1 });
});

it('tells where it listens, and ends on SIGTERM also with a call on hold', async () => {
  const child = launch({ LAB_LEDGER: 'memory' });
  const line = await ready(child);
  expect(line).toMatchObject({ ready: true, lab: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), ledger: 'memory' });
  const client = new LabClient(line.lab);
  await client.script({ mode: 'HANG' });
  const held = client.payAndLose('a', 'k-1');
  await client.ledgerWithCalls('k-1', 1);
  expect(await end(child, 'SIGTERM')).toBe(0);
  expect(await held).toBe('ECONNRESET');
});

it('says in one line that its port is taken', async () => {
  const { lab } = await ready(launch());
  const port = new URL(lab).port;
  const second = launch({ LAB_PORT: port, LAB_SMTP_PORT: '0' });
  let errors = '';
  second.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const code = await new Promise((resolve) => second.once('close', resolve));
  expect(code).toBe(1);
  expect(errors.trim().split('\n')).toHaveLength(1);
  expect(JSON.parse(errors).msg).toBe(`the lab cannot start: port (LAB_PORT) ${port} is taken; choose another`);
});
