import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { createSealer, type KeyWrapper } from '#adapters/crypto/sealer.js';
import { PostgresDataKeys } from '#adapters/event-store/postgres/postgres-data-keys.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { migrate } from '#adapters/postgres/migrate.js';
import type { Sealer } from '#domain';
import { createTestDatabase, type TestDatabase } from './test-database.js';

export interface OpenLog {
  readonly log: PostgresEventLog;
  readonly pool: Pool;
  close(): Promise<void>;
}

/** One more process's view of a log: an own pool and an own connection for appends. */
export function openLog(url: string, { appendUrl = url, poolSize = 2 } = {}): OpenLog {
  // Sessions are cut on purpose in these tests; the pool replaces them.
  const pool = openPool({ url, poolSize, onIdleError: () => undefined });
  const log = new PostgresEventLog(pool, { url: appendUrl, hashing: nodeHashing });
  const close = async () => {
    await log.close();
    await pool.end();
  };
  return { log, pool, close };
}

/** A fresh database with the schema in it. */
export async function createLogDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  await withPool(database.url, async (pool) => void (await migrate(pool)));
  return database;
}

export async function withPool<T>(url: string, work: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = openPool({ url, poolSize: 2, onIdleError: () => undefined });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

/** A session of its own for raw SQL, beside everything that the adapters do. */
export async function openSession(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined); // The database may be dropped under it.
  await client.connect();
  return client;
}

export interface LogWithKeys extends OpenLog {
  readonly dataKeys: PostgresDataKeys;
  readonly sealer: Sealer & KeyWrapper;
}

export function openLogWithKeys(url: string): LogWithKeys {
  const opened = openLog(url);
  const sealer = createSealer([{ version: 'v1', key: randomBytes(32) }]);
  return { ...opened, sealer, dataKeys: new PostgresDataKeys(opened.pool, sealer) };
}
