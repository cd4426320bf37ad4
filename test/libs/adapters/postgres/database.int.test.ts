import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectionSettings, isConnectionFault, isRefusedData, openPool, type Pool } from '#adapters/postgres/database.js';
import { openSession } from '../../../support/event-log-postgres.js';
import { createTestDatabase, type TestDatabase } from '../../../support/test-database.js';

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = openPool({ url: database.url });
  await pool.query('create table numbers (n integer primary key)');
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function endSession(pid: number): Promise<void> {
  const killer = await openSession(database.url);
  await killer.query('select pg_terminate_backend($1, 5000)', [pid]);
  await killer.end();
}

/** The error that a statement fails with. */
async function errorOf(statement: string, on: Pick<Pool, 'query'> = pool): Promise<unknown> {
  return on.query(statement).then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('a connection that is handed out', () => {
  it('may break without ending the process', async () => {
    const client = await pool.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const broken = new Promise((resolve) => client.once('error', resolve));
    await endSession(rows[0]!.pid);
    await broken;
    await expect(client.query('select 1')).rejects.toThrow();
    client.release(true);
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('waits for an answer somewhat longer than the server for its statement, and no longer', () => {
    const { statement_timeout: server, query_timeout: driver } = connectionSettings({ url: database.url });
    expect(driver).toBe(Number(server) + 5_000);
  });

  it('has bounds on the server and isolation of its own', async () => {
    const shown = `select name, setting from pg_settings where name = any('{statement_timeout,idle_in_transaction_session_timeout,default_transaction_isolation}') order by name`;
    expect((await pool.query<{ setting: string }>(shown)).rows.map(({ setting }) => setting)).toEqual(['read committed', '30000', '30000']);
  });
});

describe('an error', () => {
  it.each([
    [`do $$ begin raise exception 'x' using errcode = '57P01'; end $$`, true],
    [`do $$ begin raise exception 'x' using errcode = '08006'; end $$`, true],
    [`do $$ begin raise exception 'x' using errcode = '25P04'; end $$`, true],
    [`set statement_timeout = 1; select pg_sleep(1)`, false],
    [`do $$ begin raise exception 'x' using errcode = '53100'; end $$`, false],
    [`do $$ begin raise exception 'x' using errcode = '40P01'; end $$`, false],
    [`select 1 / 0`, false],
  ])('of %s is the fault of the connection: %s', async (statement, isFault) => {
    const own = openPool({ url: database.url, poolSize: 1 });
    const error = await errorOf(statement, own);
    await own.end();
    expect(error).toBeDefined();
    expect(isConnectionFault(error)).toBe(isFault);
  });

  it('that ends the session is one whatever its code', async () => {
    const client = await pool.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const sleeping = client.query('select pg_sleep(20)').then(
      () => undefined,
      (error: unknown) => error,
    );
    await endSession(rows[0]!.pid);
    expect(isConnectionFault(await sleeping)).toBe(true);
    client.release(true);
    expect(isConnectionFault({ severity: 'FATAL', code: '53300' })).toBe(true);
    expect(isConnectionFault({ severity: 'PANIC', code: '53100' })).toBe(true);
  });

  it('that comes from the socket or the driver is one', () => {
    expect(isConnectionFault(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))).toBe(true);
    expect(isConnectionFault(new Error('Connection terminated unexpectedly'))).toBe(true);
    expect(isConnectionFault(new Error('Query read timeout'))).toBe(true);
  });

  it('of the data is told from all others', async () => {
    expect(isRefusedData(await errorOf('insert into numbers values (1), (1)'))).toBe(true);
    expect(isRefusedData(await errorOf(`select 'x'::uuid`))).toBe(true);
    expect(isRefusedData(await errorOf('select * from nowhere'))).toBe(false);
    expect(isRefusedData(Object.assign(new Error('x'), { code: '23505' }))).toBe(false);
  });
});
