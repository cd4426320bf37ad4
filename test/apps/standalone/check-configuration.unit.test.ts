import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ConfigurationFaults } from '#adapters/configuration/faults.js';
import { checkConfiguration } from '#apps/standalone/src/check-configuration.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'onefold-check-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function faultsOf(env: Record<string, string>): string[] {
  try {
    checkConfiguration(env);
  } catch (error) {
    if (error instanceof ConfigurationFaults) return error.faults.map(({ path }) => path);
    throw error;
  }
  return [];
}

it('finds the shipped catalogue and an empty environment in order', () => {
  expect(checkConfiguration({})).toContain('7 actions, 7 providers');
});

it('lists the faults of the environment and of the catalogue together', () => {
  const file = join(folder, 'bad.yaml');
  writeFileSync(
    file,
    `providers:
  p:
    kind: http
    base_url: https://api.example.test
    timeout: 40s
    lookup: { request: { method: GET, path: /x }, consistent: false, present: /items }
    outcomes: { final: [400] }
actions:
  a.b: { provider: nope, risk: irreversible, request: { method: POST, path: /x, body: payload } }
  a.c: { provider: p, risk: irreversible, payload: { type: objekt }, request: { method: POST, path: /x, body: payload } }
`,
  );
  const faults = faultsOf({ ONEFOLD_CATALOGUE: file, PORT: '99999', ONEFOLD_DATADIR: 'x' });
  for (const path of [
    'PORT',
    'ONEFOLD_DATADIR',
    'providers.p.timeout',
    'providers.p.lookup.visibility_lag',
    'actions.a.b.provider',
    'actions.a.c.payload',
  ]) {
    expect(faults).toContain(path);
  }
});

it('tells of a catalogue that is not there also when the environment has a fault', () => {
  const faults = faultsOf({ ONEFOLD_CATALOGUE: join(folder, 'none.yaml'), PORT: 'x' });
  expect(faults).toContain('PORT');
  expect(faults.length).toBeGreaterThan(1);
});
