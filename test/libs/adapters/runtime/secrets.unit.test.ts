import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadSecrets, SecretsFault } from '#adapters/runtime/secrets.js';

const NOTHING = { identitySecrets: null, masterKeys: null };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'onefold-secrets-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('makes secrets at the first start, for the owner alone, and keeps them', () => {
  const first = loadSecrets(folder, NOTHING);
  expect(loadSecrets(folder, NOTHING)).toEqual(first);
  expect(first.masterKeys[0].key).toHaveLength(32);
  expect(statSync(join(folder, 'secrets.json')).mode & 0o777).toBe(0o600);
});

it('takes what the environment gives, current version first', () => {
  const { version, secret } = { version: 'v2', secret: 'ab'.repeat(32) };
  const { identitySecrets, masterKeys } = loadSecrets(folder, {
    identitySecrets: [
      { version, secret },
      { version: 'v1', secret: 'cd'.repeat(32) },
    ],
    masterKeys: null,
  });
  expect(identitySecrets.map((one) => one.version)).toEqual(['v2', 'v1']);
  expect(masterKeys).toHaveLength(1);
});

it('refuses a damaged file rather than making new secrets over it, and does not show what it holds', () => {
  const file = join(folder, 'secrets.json');
  for (const text of ['{"identity": "short"}', 'not json', '']) {
    writeFileSync(file, text);
    expect(() => loadSecrets(folder, NOTHING)).toThrow(SecretsFault);
    expect(readFileSync(file, 'utf8')).toBe(text);
  }
});
