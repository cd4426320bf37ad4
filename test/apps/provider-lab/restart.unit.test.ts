import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Lab } from '#apps/provider-lab/src/lab.js';
import { LabClient, newLab } from './lab-client.js';

let folder: string;
let file: string;
let lab: Lab;
let client: LabClient;

const start = async () => {
  lab = await newLab({ ledgerFile: file });
  client = new LabClient(lab.url);
};
const restart = async () => {
  await lab.close();
  await start();
};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'onefold-lab-'));
  file = join(folder, 'data', 'lab-ledger.ndjson');
  await start();
});
afterEach(async () => {
  await lab.close();
  rmSync(folder, { recursive: true });
});

it('has each call in its file before the caller has the answer', async () => {
  const { id } = (await client.pay('c', 'k-1', 'app-1')).body;
  expect(readFileSync(file, 'utf8')).toContain(`"${id}"`);
});

it('tells the same truth after a restart', async () => {
  await Promise.all(Array.from({ length: 20 }, (_, i) => client.pay('c', `k-${i % 10}`, `app-${i}`)));
  await client.script({ mode: 'D402' });
  await client.pay('d', 'k-refused', 'app-refused');
  await client.lookUp('c', 'k-1');
  const totals = await client.ledger();
  const one = await client.ledger('k-1');
  await restart();
  expect(totals).toMatchObject({ calls: 21, effects: 20, max_effects_per_reference: 2, lookups: 1 });
  expect(await client.ledger()).toEqual(totals);
  expect(await client.ledger('k-1')).toEqual(one);
  expect((await client.pay('c', 'k-new', null)).body.id).not.toBe(one.entries[0].id);
});

it('still replays a key, refuses its reuse, and rejects a repeated business reference', async () => {
  const first = await client.pay('a', 'k-1', 'app-1');
  await client.pay('e', 'k-1', 'app-1');
  await restart();
  expect((await client.pay('a', 'k-1', 'app-1')).body).toEqual(first.body);
  expect((await client.pay('a', 'k-1', 'app-2')).status).toBe(422);
  expect((await client.pay('e', 'k-2', 'app-1')).status).toBe(409);
});

it('still shows an effect to a look-up, with its amount', async () => {
  await client.pay('c', 'k-1', 'app-1');
  const before = await client.lookUp('c', 'k-1');
  await restart();
  expect((await client.lookUp('c', 'k-1')).body).toEqual(before.body);
  expect(before.body.items[0].amount_minor).toBe(125000);
});

it('keeps scripts, what is left of them, and class settings', async () => {
  await client.script({ match: { class: 'c' }, mode: 'D402', times: 2 });
  await client.setClass('c', { lookup_fault: '403' });
  await client.setClass('b', { key_retention_ms: 5 });
  expect((await client.pay('c', 'k-1', 'app-1')).status).toBe(402);
  await restart();
  expect((await client.pay('c', 'k-2', 'app-2')).status).toBe(402);
  expect((await client.pay('c', 'k-3', 'app-3')).status).toBe(200);
  expect((await client.lookUp('c', 'k-3')).status).toBe(403);
  expect((await client.send('GET', '/lab/class/b')).body.key_retention_ms).toBe(5);
});

it('lands what was planned before the restart', async () => {
  await client.script({ mode: 'LATE_LANDING', delay_ms: 500 });
  const giveUp = new AbortController();
  const call = client.payAndLose('c', 'k-1', giveUp.signal);
  expect(await client.ledgerWithCalls('k-1', 1)).toMatchObject({ effects: 0 });
  await restart();
  await call;
  expect(await client.ledgerWithEffects('k-1', 1)).toMatchObject({ calls: 1, effects: 1 });
  await restart();
  expect(await client.ledger('k-1')).toMatchObject({ calls: 1, effects: 1 });
});

it('a reset forgets everything, also on disk', async () => {
  await client.pay('a', 'k-1', 'app-1');
  await client.script({ mode: 'D402', times: 0 });
  await client.setClass('c', { lookup_fault: '403' });
  expect((await client.send('POST', '/lab/reset')).status).toBe(200);
  await restart();
  expect(await client.ledger()).toMatchObject({ calls: 0, effects: 0, references: 0, max_effects_per_reference: 0, lookups: 0 });
  expect((await client.pay('a', 'k-1', 'app-2')).status).toBe(200);
  expect((await client.lookUp('c', 'k-1')).status).toBe(200);
});

describe('a damaged file', () => {
  it('loses only a torn last line', async () => {
    await client.pay('c', 'k-1', 'app-1');
    await lab.close();
    appendFileSync(file, '{"t":"call","script":null,"entry":{"seq":2,"cla');
    await start();
    expect(await client.ledger()).toMatchObject({ calls: 1, effects: 1 });
    await client.pay('c', 'k-2', 'app-2');
    await restart();
    expect(await client.ledger()).toMatchObject({ calls: 2, effects: 2 });
  });

  it('stops the start when the damage is elsewhere, and frees the ports', async () => {
    await client.pay('c', 'k-1', 'app-1');
    const { port } = lab;
    await lab.close();
    writeFileSync(file, `not json\n${readFileSync(file, 'utf8')}`);
    await expect(newLab({ port, smtpPort: 0, ledgerFile: file })).rejects.toThrow(/damaged at line 1; move it away/);
    lab = await newLab({ port, ledgerFile: null });
  });
});

it('a taken port is an error of one line, and the file is left alone', async () => {
  const before = readFileSync(file, 'utf8');
  const second = newLab({ port: lab.port, ledgerFile: file });
  await expect(second).rejects.toThrow(`port (LAB_PORT) ${lab.port} is taken; choose another`);
  expect(readFileSync(file, 'utf8')).toBe(before);
});
