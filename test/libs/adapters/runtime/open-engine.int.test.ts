import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLogger } from '#adapters/observability/logger.js';
import { openPool } from '#adapters/postgres/database.js';
import { SecretMismatch } from '#adapters/postgres/secret-fingerprints.js';
import { openEngine, type Engine, type EngineOptions } from '#adapters/runtime/open-engine.js';
import { WeakDurability } from '#adapters/runtime/open-store.js';
import { createTestDatabase, type TestDatabase } from '../../../support/test-database.js';

let database: TestDatabase;
let engine: Engine | undefined;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await engine?.close();
  engine = undefined;
  await database.drop();
});

const identity = (version: string, letter: string) => ({ version, secret: letter.repeat(64) });
const master = (version: string, byte: number) => ({ version, key: Buffer.alloc(32, byte) });
const open = async (options: Partial<EngineOptions> = {}) => {
  engine = await openEngine({
    databaseUrl: database.url,
    applicationName: 'onefold-test',
    eventStore: 'postgres',
    eventStoreUrl: null,
    feed: 'direct',
    identitySecrets: [identity('v1', 'a')],
    masterKeys: [master('v1', 1)],
    allowWeakDurability: false,
    logger: createLogger({ process: 'test', level: 'silent' }),
    ...options,
  });
  return engine;
};

it('opens an empty database, and the same one again', async () => {
  await (await open()).check();
  await engine!.close();
  await (await open()).check();
});

it('refuses other secrets under the same version, by name and without showing them', async () => {
  await (await open()).close();
  engine = undefined;
  await expect(open({ identitySecrets: [identity('v1', 'b')] })).rejects.toThrow(
    /identity secret v1: not what this database was made with/,
  );
  const refused = await open({ masterKeys: [master('v1', 2)] }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(SecretMismatch);
  expect((refused as Error).message).not.toContain('0202');
});

it('refuses to leave out a version that the database was made with, and tells where the generated one stands', async () => {
  await (await open()).close();
  engine = undefined;
  await expect(open({ identitySecrets: [identity('v9', 'e')] })).rejects.toThrow(
    /identity secret v1: this database was made with it.*secrets\.json/,
  );
  await expect(open({ masterKeys: [master('v9', 9)] })).rejects.toThrow(/master key v1: this database was made with it/);
  // A refused start records nothing: the same version with another secret is still free.
  await open({ identitySecrets: [identity('v9', 'f'), identity('v1', 'a')] });
});

it('takes a new version in front of the old one, and from then on knows both', async () => {
  await open({ identitySecrets: [identity('v2', 'c'), identity('v1', 'a')] });
  await engine!.close();
  engine = undefined;
  await expect(open({ identitySecrets: [identity('v2', 'd'), identity('v1', 'a')] })).rejects.toThrow(SecretMismatch);
});

it('refuses a database that could lose what it has confirmed, unless that is accepted', async () => {
  const pool = openPool({ url: database.url });
  const name = new URL(database.url).pathname.slice(1);
  try {
    await pool.query(`alter database "${name}" set synchronous_commit = off`);
    await expect(open()).rejects.toThrow(WeakDurability);
    await (await open({ allowWeakDurability: true })).check();
  } finally {
    await pool.query(`alter database "${name}" reset synchronous_commit`);
    await pool.end();
  }
});
