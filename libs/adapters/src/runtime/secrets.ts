import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { IdentitySecret } from '#domain';
import type { MasterKey } from '../crypto/sealer.js';

export interface Secrets {
  readonly identitySecrets: readonly [IdentitySecret, ...IdentitySecret[]];
  readonly masterKeys: readonly [MasterKey, ...MasterKey[]];
  /** Keys the hashes of API keys. */
  readonly pepper: string;
}

/** What the environment gives; null where it gives nothing. */
export interface GivenSecrets {
  readonly identitySecrets: readonly IdentitySecret[] | null;
  readonly masterKeys: readonly MasterKey[] | null;
}

interface StoredSecrets {
  readonly identity: string;
  readonly master: string;
  readonly pepper: string;
}

const FILE = 'secrets.json';
const SECRET_BYTES = 32;

export class SecretsFault extends Error {
  override readonly name = 'SecretsFault';
}

/**
 * The secrets of an installation: from the environment, and what is missing there from a file in the data folder that is made at the
 * first start, readable by its owner alone. Losing the file loses every payload and splits every identity, so it belongs into a backup.
 * @throws SecretsFault when the file is there and can't be used
 */
export function loadSecrets(dataDir: string, given: GivenSecrets): Secrets {
  const stored = readOrMake(dataDir);
  const [identity, ...olderIdentities] = given.identitySecrets ?? [];
  const [master, ...olderMasters] = given.masterKeys ?? [];
  return {
    identitySecrets: [identity ?? { version: 'v1', secret: stored.identity }, ...olderIdentities],
    masterKeys: [master ?? { version: 'v1', key: Buffer.from(stored.master, 'hex') }, ...olderMasters],
    pepper: stored.pepper,
  };
}

function readOrMake(dataDir: string): StoredSecrets {
  const file = join(dataDir, FILE);
  mkdirSync(dataDir, { recursive: true });
  if (existsSync(file)) return read(file);
  const secret = () => randomBytes(SECRET_BYTES).toString('hex');
  const made: StoredSecrets = { identity: secret(), master: secret(), pepper: secret() };
  writeDurably(file, `${JSON.stringify(made, null, 2)}\n`);
  return made;
}

function read(file: string): StoredSecrets {
  try {
    const stored = JSON.parse(readFileSync(file, 'utf8')) as Partial<StoredSecrets>;
    const isSecret = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
    if (isSecret(stored.identity) && isSecret(stored.master) && isSecret(stored.pepper)) return stored as StoredSecrets;
  } catch (error) {
    throw new SecretsFault(`${file} can't be read (${(error as NodeJS.ErrnoException).code ?? 'not JSON'}); restore it from a backup.`);
  }
  throw new SecretsFault(`${file} is damaged: it holds identity, master and pepper, 64 hex digits each; restore it from a backup.`);
}

/** Whole or not at all, and on disk before anything is made with it: a secret lost in a power cut would lose what it sealed. */
export function writeDurably(file: string, text: string): void {
  const temporary = `${file}.${process.pid}`;
  const handle = openSync(temporary, 'w', 0o600);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, file);
  if (process.platform === 'win32') return; // A folder can't be opened there.
  const folder = openSync(dirname(file), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
