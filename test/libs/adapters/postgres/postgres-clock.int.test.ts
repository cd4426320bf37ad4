import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { PostgresClock } from '#adapters/postgres/postgres-clock.js';
import { createLogDatabase, openSession } from '../../../support/event-log-postgres.js';
import type { TestDatabase } from '../../../support/test-database.js';

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createLogDatabase();
  await shadowCatalog();
  pool = openPool({ url: database.url });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const stopping: PostgresClock[] = [];
afterEach(async () => {
  for (const clock of stopping.splice(0)) clock.stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
  await resetInDatabase();
});

async function startClock(onError: (error: Error) => void = () => undefined, on = pool): Promise<PostgresClock> {
  const clock = await PostgresClock.start(on, onError);
  stopping.push(clock);
  return clock;
}

/**
 * Only a superuser may run `alter database ... set onefold.clock_offset_ms`, and the role of the tests is none. What that statement
 * leaves in the catalog, one `name=value` in the row of the database and no role, is put beside the catalog's own rows instead.
 */
async function shadowCatalog(): Promise<void> {
  const session = await openSession(database.url);
  await session.query(`
    create schema shadow;
    create table shadow.settings (setdatabase oid, setrole oid, setconfig text[]);
    create view shadow.pg_db_role_setting as
      select setdatabase, setrole, setconfig from pg_catalog.pg_db_role_setting union all select * from shadow.settings;
    do $$ begin execute format('alter database %I set search_path = shadow, pg_catalog', current_database()); end $$`);
  await session.end();
}

/** As `alter database <which> set <setting>`, which replaces what was set before. */
async function setInDatabase(setting: string, which = 'current_database()'): Promise<void> {
  await resetInDatabase();
  await pool.query(
    `insert into shadow.settings select oid, 0, array['statement_timeout=30s', $1] from pg_database where datname = ${which}`,
    [setting],
  );
}

const resetInDatabase = () => pool.query('delete from shadow.settings');

async function databaseMs(): Promise<number> {
  const text = 'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms';
  return Number((await pool.query<{ ms: string }>(text)).rows[0]!.ms);
}

/** How far the clock is ahead of the database's own time, wrong by the time of one question at most. */
async function aheadMs(clock: PostgresClock): Promise<{ atLeast: number; atMost: number }> {
  const before = await databaseMs();
  const now = clock.nowMs();
  const after = await databaseMs();
  return { atLeast: now - after, atMost: now - before };
}

/** Half of a round trip on a machine under load. */
const TOLERANCE_MS = 500;

async function expectAhead(clock: PostgresClock, ms: number): Promise<void> {
  const { atLeast, atMost } = await aheadMs(clock);
  expect(atMost).toBeGreaterThan(ms - TOLERANCE_MS);
  expect(atLeast).toBeLessThan(ms + TOLERANCE_MS);
}

describe('the database clock', () => {
  it('tells the time of the database', async () => {
    await expectAhead(await startClock(), 0);
  });

  it.each([30_000, -30_000, 86_400_000])('follows an offset of %i ms on connections that are open already', async (offset) => {
    const clock = await startClock();
    await setInDatabase(`onefold.clock_offset_ms=${offset}`);
    await clock.calibrate();
    await expectAhead(clock, offset);
    await resetInDatabase();
    await clock.calibrate();
    await expectAhead(clock, 0);
  });

  it('does so by itself every five seconds', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const clock = await startClock();
    await setInDatabase('onefold.clock_offset_ms=60000');
    const calibrated = vi.spyOn(clock, 'calibrate');
    vi.advanceTimersByTime(4_999);
    expect(calibrated).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    await calibrated.mock.results[0]!.value;
    await expectAhead(clock, 60_000);
    clock.stop();
    vi.advanceTimersByTime(60_000);
    expect(calibrated).toHaveBeenCalledTimes(1);
  });

  it('is not led astray by the clock of this machine', async () => {
    vi.spyOn(Date, 'now').mockReturnValue(0);
    await expectAhead(await startClock(), 0);
  });

  it('runs on from its last answer when the database is away, and says so', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const own = openPool({ url: database.url });
    let told: (error: Error) => void = () => undefined;
    const error = new Promise<Error>((resolve) => (told = resolve));
    const clock = await startClock((fault) => told(fault), own);
    await own.end();
    vi.advanceTimersByTime(5_000);
    expect(await error).toBeInstanceOf(Error);
    await expectAhead(clock, 0);
  });
});

describe('onefold.now_ms', () => {
  const nowMs = async () => Number((await pool.query<{ now: string }>('select onefold.now_ms() as now')).rows[0]!.now);

  it('is the time at which it is asked, not the beginning of the transaction', async () => {
    const client = await pool.connect();
    await client.query('begin');
    const ask = async () => Number((await client.query<{ now: string }>('select onefold.now_ms() as now')).rows[0]!.now);
    const first = await ask();
    await client.query('select pg_sleep(0.02)');
    expect((await ask()) - first).toBeGreaterThanOrEqual(20);
    await client.query('commit');
    client.release();
  });

  it.each([
    ['onefold.clock_offset_ms_other=5000000', 'current_database()'],
    ['onefold.clock_offset_ms=5000000', `'postgres'`],
  ])('is not moved by %s in the settings of %s', async (setting, which) => {
    await setInDatabase(setting, which);
    const before = await databaseMs();
    expect((await nowMs()) - before).toBeLessThan(TOLERANCE_MS);
  });

  it('is moved by the settings that a server or a session was started with, unless the database has its own', async () => {
    const started = openPool({ url: `${database.url}?options=-c%20onefold.clock_offset_ms%3D70000` });
    const clock = await startClock(() => undefined, started);
    await expectAhead(clock, 70_000);
    await setInDatabase('onefold.clock_offset_ms=0');
    await clock.calibrate();
    await expectAhead(clock, 0);
    await started.end();
  });

  it('finds the settings of a database where the catalog keeps them', async () => {
    await pool.query(`do $$ begin execute format('alter database %I set work_mem = %L', current_database(), '5MB'); end $$`);
    const text = `select setting from pg_catalog.pg_db_role_setting s cross join unnest(s.setconfig) as setting
                  where s.setrole = 0 and s.setdatabase = (select oid from pg_database where datname = current_database())
                    and setting like 'work_mem=%'`;
    expect((await pool.query(text)).rows).toEqual([{ setting: 'work_mem=5MB' }]);
  });
});
