import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pool } from './database.js';
import { packageRoot } from '../package-root.js';

export const MIGRATIONS_FOLDER = join(packageRoot, 'libs/adapters/src/postgres/migrations');

/** Any number no other program of this database is likely to lock by. */
const MIGRATION_LOCK = 7_239_013;

/** Another process may be at a long migration of a large table; longer than this it is stuck. */
const MIGRATION_TIMEOUT_MS = 15 * 60_000;

export class SchemaFault extends Error {
  override readonly name = 'SchemaFault';
}

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

export function readMigrations(folder = MIGRATIONS_FOLDER): Migration[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort();
  return files.map((file, index) => {
    const number = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1]);
    if (number !== index + 1)
      throw new SchemaFault(`Migration ${file} should be number ${String(index + 1).padStart(4, '0')}, without gaps.`);
    return { number, name: file.slice(0, -4), sql: readFileSync(join(folder, file), 'utf8') };
  });
}

/**
 * Brings the schema up to date: numbered files, each applied once in its own transaction, under a lock so that processes that start
 * together do not race. Applied migrations are never changed; a new one is appended.
 * @returns names of the migrations that were applied now
 * @throws SchemaFault when the database is newer than this program, or was brought up to date by another one
 */
export async function migrate(pool: Pool, migrations = readMigrations()): Promise<string[]> {
  const client = await pool.connect();
  // The server's own limit is raised with the driver's, which it reads from each query.
  const run = <Row extends object>(text: string, values: unknown[] = []) => {
    const query = { text, values, query_timeout: MIGRATION_TIMEOUT_MS + 5_000 };
    return client.query<Row>(query);
  };
  try {
    await run(`set statement_timeout = ${MIGRATION_TIMEOUT_MS}`);
    await run('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await run('create schema if not exists onefold');
    await run(
      'create table if not exists onefold.migrations (number integer primary key, name text not null, applied_at timestamptz not null default now())',
    );
    const { rows } = await run<AppliedMigration>('select number, name from onefold.migrations order by number');
    const pending = pendingMigrations(rows, migrations);
    for (const { number, name, sql } of pending) {
      await run('begin');
      await run(sql);
      await run('insert into onefold.migrations (number, name) values ($1, $2)', [number, name]);
      await run('commit');
    }
    return pending.map(({ name }) => name);
  } catch (error) {
    await client.query('rollback').catch(() => undefined); // The first error is the one to report; the connection is closed below.
    throw error;
  } finally {
    // Closing the session also frees the lock, whatever state the connection is in.
    client.release(true);
  }
}

type AppliedMigration = Omit<Migration, 'sql'>;

function pendingMigrations(applied: readonly AppliedMigration[], migrations: readonly Migration[]): Migration[] {
  const unknown = applied.find(({ number }) => number > migrations.length);
  if (unknown) throw new SchemaFault(`The database has migration ${unknown.name}, which this program does not know; run a newer version.`);
  applied.forEach(({ number, name }, index) => {
    const own = migrations[index]!;
    if (number === own.number && name === own.name) return;
    throw new SchemaFault(`The database has migration ${name} in the place of ${own.name}; it belongs to another program or branch.`);
  });
  return migrations.slice(applied.length);
}

/** Settings with which an acknowledged command could be lost. */
const DURABILITY = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' } as const;

/** Names of the settings that are weaker than an acknowledgement promises, with their values. */
export async function weakDurabilitySettings(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ name: string; setting: string }>('select name, setting from pg_settings where name = any($1)', [
    Object.keys(DURABILITY),
  ]);
  // remote_apply and remote_write wait for this server's disk like `on`, and for a standby besides.
  const strong = (name: string, setting: string) =>
    setting === DURABILITY[name as keyof typeof DURABILITY] || (name === 'synchronous_commit' && setting.startsWith('remote_'));
  return rows.filter(({ name, setting }) => !strong(name, setting)).map(({ name, setting }) => `${name} = ${setting}`);
}
