import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { migrate, readMigrations, SchemaFault, weakDurabilitySettings, type Migration } from '#adapters/postgres/migrate.js';
import { numbered } from '../../../support/event-log-samples.js';
import { createTestDatabase, type TestDatabase } from '../../../support/test-database.js';

let database: TestDatabase;
let pool: Pool;
beforeEach(async () => {
  database = await createTestDatabase();
  pool = openPool({ url: database.url });
});
afterEach(async () => {
  await pool.end();
  await database.drop();
});

const names = (migrations: readonly Migration[]) => migrations.map(({ name }) => name);
const shipped = readMigrations();

/** A migration behind the shipped ones. */
const next = (sql: string, name = 'next'): Migration => {
  const number = shipped.length + 1;
  return { number, name: `${String(number).padStart(4, '0')}_${name}`, sql };
};

async function applied(): Promise<string[]> {
  return (await pool.query<{ name: string }>('select name from onefold.migrations order by number')).rows.map(({ name }) => name);
}

const exists = async (table: string) =>
  (await pool.query<{ found: boolean }>('select to_regclass($1) is not null as found', [table])).rows[0]!.found;

describe('migrate', () => {
  it('brings an empty database up to date, and has nothing to do the second time', async () => {
    expect(await migrate(pool)).toEqual(names(shipped));
    expect(await migrate(pool)).toEqual([]);
    expect(await applied()).toEqual(names(shipped));
    expect(await exists('onefold.events')).toBe(true);
  });

  it('applies each migration once when ten processes start together', async () => {
    const counted = [...shipped, next('create table onefold.counted (n integer); insert into onefold.counted values (1)')];
    const pools = numbered(10).map(() => openPool({ url: database.url, poolSize: 1 }));
    const results = await Promise.all(pools.map((each) => migrate(each, counted)));
    await Promise.all(pools.map((each) => each.end()));
    expect(results.filter(({ length }) => length > 0)).toEqual([names(counted)]);
    expect((await pool.query('select n from onefold.counted')).rows).toEqual([{ n: 1 }]);
  });

  it('adds only what is new', async () => {
    await migrate(pool, shipped.slice(0, 1));
    expect(await migrate(pool)).toEqual(names(shipped.slice(1)));
  });

  it('leaves nothing behind of a migration that fails, and frees its lock', async () => {
    const broken = next('create table onefold.half (n integer); insert into onefold.half values (1); select 1 / 0');
    await expect(migrate(pool, [...shipped, broken])).rejects.toMatchObject({ code: '22012' });
    expect(await applied()).toEqual(names(shipped));
    expect(await exists('onefold.half')).toBe(false);
    const mended = next('create table onefold.half (n integer)');
    expect(await migrate(pool, [...shipped, mended])).toEqual([mended.name]);
  });

  it('applies a migration and records it together or not at all', async () => {
    const unrecorded = next(`create table onefold.half (n integer); alter table onefold.migrations add check (name not like '%_next')`);
    await expect(migrate(pool, [...shipped, unrecorded])).rejects.toMatchObject({ code: '23514' });
    expect(await exists('onefold.half')).toBe(false);
  });

  it('refuses a database that a newer program has brought up to date, and changes nothing in it', async () => {
    const future = next('create table onefold.future (n integer)', 'future');
    await migrate(pool, [...shipped, future]);
    const refusal = migrate(pool);
    await expect(refusal).rejects.toThrow(SchemaFault);
    await expect(refusal).rejects.toThrow(`${future.name}, which this program does not know; run a newer version`);
    expect(await applied()).toEqual([...names(shipped), future.name]);
  });

  it('refuses a database in which another migration stands under the same number', async () => {
    await migrate(pool, [...shipped, next('select 1', 'theirs')]);
    await expect(migrate(pool, [...shipped, next('select 2', 'ours')])).rejects.toThrow(/_theirs in the place of .*_ours/);
  });

  it('waits out a migration of another process that takes long', async () => {
    const holder = await pool.connect();
    await holder.query('select pg_advisory_lock(7239013)');
    const migrating = migrate(pool);
    const waits = async () => (await pool.query(`select 1 from pg_locks where locktype = 'advisory' and not granted`)).rowCount === 1;
    for (let rounds = 0; rounds < 1_000 && !(await waits()); rounds++);
    expect(await waits()).toBe(true);
    const limit = `select (select setting from pg_settings where name = 'statement_timeout') as here`;
    expect((await holder.query<{ here: string }>(limit)).rows[0]!.here).toBe('30000');
    await holder.query('select pg_advisory_unlock(7239013)');
    holder.release();
    expect(await migrating).toEqual(names(shipped));
    // The raised limit of the migration is not left on a connection of the pool.
    expect((await pool.query<{ here: string }>(limit)).rows[0]!.here).toBe('30000');
  });
});

describe('the numbers of migrations', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'onefold-migrations-'));
  });
  afterEach(() => rm(folder, { recursive: true }));
  const write = (...files: string[]) => Promise.all(files.map((file) => writeFile(join(folder, file), `-- ${file}`)));

  it('are read in order, other files left aside', async () => {
    await write('0002_second.sql', '0001_first.sql', 'README.md');
    expect(readMigrations(folder)).toEqual([
      { number: 1, name: '0001_first', sql: '-- 0001_first.sql' },
      { number: 2, name: '0002_second', sql: '-- 0002_second.sql' },
    ]);
  });

  it.each([
    ['a gap', ['0001_first.sql', '0003_third.sql'], '0003_third.sql should be number 0002'],
    ['a number twice', ['0001_first.sql', '0001_other.sql'], '0001_other.sql should be number 0002'],
    ['no number', ['0001_first.sql', 'second.sql'], 'second.sql should be number 0002'],
    ['a beginning above 1', ['0002_second.sql'], '0002_second.sql should be number 0001'],
  ])('%s is refused', async (_, files, message) => {
    await write(...files);
    expect(() => readMigrations(folder)).toThrow(SchemaFault);
    expect(() => readMigrations(folder)).toThrow(message);
  });
});

describe('weak durability settings', () => {
  const alter = (change: string) => pool.query(`do $$ begin execute format('alter database %I ${change}', current_database()); end $$`);
  /** Settings of a database hold for sessions that begin afterwards. */
  async function weakIn(url: string): Promise<string[]> {
    const fresh = openPool({ url, poolSize: 1 });
    try {
      return await weakDurabilitySettings(fresh);
    } finally {
      await fresh.end();
    }
  }

  it('there are none on a server as it comes', async () => {
    expect(await weakDurabilitySettings(pool)).toEqual([]);
  });

  it.each([
    ['off', ['synchronous_commit = off']],
    ['local', ['synchronous_commit = local']],
    ['remote_apply', []],
    ['on', []],
  ])('synchronous_commit %s', async (value, weak) => {
    await alter(`set synchronous_commit = ${value}`);
    expect(await weakIn(database.url)).toEqual(weak);
  });

  it('fsync and full_page_writes count as well', async () => {
    // They can't be turned off for one database: a view of the same name answers in place of the catalog's.
    await pool.query('create schema weak');
    await pool.query(
      `create view weak.pg_settings as select name, case when name in ('fsync', 'full_page_writes') then 'off' else setting end as setting from pg_catalog.pg_settings`,
    );
    await alter('set search_path = weak, pg_catalog');
    expect((await weakIn(database.url)).sort()).toEqual(['fsync = off', 'full_page_writes = off']);
  });

  it('a pool for what is rebuilt from the log has one on purpose', async () => {
    const derived = openPool({ url: database.url, durable: false });
    expect(await weakDurabilitySettings(derived)).toEqual(['synchronous_commit = off']);
    await derived.end();
  });
});
