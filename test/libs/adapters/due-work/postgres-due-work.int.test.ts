import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PostgresDueWork } from '#adapters/due-work/postgres-due-work.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { migrate } from '#adapters/postgres/migrate.js';
import type { DueChange } from '#domain';
import { moveDatabaseClock } from '../../../support/dispatcher-world.js';
import { createTestDatabase, type TestDatabase } from '../../../support/test-database.js';

const HIDE_MS = 5_000;

describe('due work in PostgreSQL', () => {
  let database: TestDatabase;
  let pool: Pool;
  let dueWork: PostgresDueWork;
  let nowMs: number;
  beforeEach(async () => {
    database = await createTestDatabase();
    pool = openPool({ url: database.url });
    await migrate(pool);
    dueWork = new PostgresDueWork(pool);
    nowMs = Number((await pool.query('select onefold.now_ms() as now')).rows[0].now);
  });
  afterEach(async () => {
    await pool.end();
    await database.drop();
  });

  const change = (operationId: string, dueInMs: number | null, revision = 0, provider = 'payments'): DueChange => ({
    operationId,
    provider,
    revision,
    dueAtMs: dueInMs === null ? null : nowMs + dueInMs,
  });
  const rows = async () => (await pool.query('select * from onefold.due_work order by operation_id')).rows;
  const take = async (room: Record<string, number>, hideMs = HIDE_MS) =>
    (
      await dueWork.take(
        Object.entries(room).map(([provider, count]) => ({ provider, rows: count })),
        hideMs,
      )
    ).map(({ operationId }) => operationId);

  it('hands out what is due, oldest first, as much of each provider as there is room', async () => {
    await dueWork.set([
      change('a', -1),
      change('b', -30),
      change('c', -20),
      change('d', -10),
      change('later', 60_000),
      change('mail-1', -5, 0, 'mail'),
      change('mail-2', -6, 0, 'mail'),
    ]);
    expect(await take({ payments: 3, mail: 1 })).toEqual(['b', 'c', 'd', 'mail-2']);
    expect(await take({ payments: 3, mail: 1 })).toEqual(['mail-1', 'a']);
    expect(await take({ payments: 3, mail: 1 })).toEqual([]);
    expect(await take({})).toEqual([]);
  });

  it('tells whose rows they are', async () => {
    await dueWork.set([change('a', -1), change('m', -1, 0, 'mail')]);
    expect(await dueWork.take([{ provider: 'mail', rows: 5 }], HIDE_MS)).toEqual([{ operationId: 'm', provider: 'mail' }]);
  });

  it('hides what was taken, and brings it back to whoever asks after that', async () => {
    await dueWork.set([change('a', -1)]);
    expect(await take({ payments: 1 })).toEqual(['a']);
    expect(Number((await rows())[0].due_at_ms) - nowMs).toBeGreaterThanOrEqual(HIDE_MS);
    // Nobody came back for it, and the time is over.
    await moveDatabaseClock(pool, HIDE_MS);
    expect(await take({ payments: 1 })).toEqual(['a']);
  });

  it('counts by the clock of the database', async () => {
    await dueWork.set([change('past', -1_000), change('soon', 3_000), change('later', 120_000)]);
    expect(await dueWork.countDue()).toBe(1);
    await moveDatabaseClock(pool, 60_000);
    expect(await dueWork.countDue()).toBe(2);
    expect(await take({ payments: 9 })).toEqual(['past', 'soon']);
  });

  it('gives each row to one of many takers', async () => {
    await dueWork.set(Array.from({ length: 300 }, (_, n) => change(`op-${n}`, -n)));
    const taken = await Promise.all(Array.from({ length: 8 }, () => take({ payments: 50 })));
    expect(new Set(taken.flat()).size).toBe(taken.flat().length);
    expect(taken.flat().length).toBe(300);
  });

  it('passes over rows that another taker is holding', async () => {
    await dueWork.set([change('held', -10), change('free', -1)]);
    const client = await pool.connect();
    try {
      await client.query('begin');
      await client.query(`select * from onefold.due_work where operation_id = 'held' for update`);
      expect(await take({ payments: 5 })).toEqual(['free']);
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  it('keeps a row of a newer revision, and takes one of the same', async () => {
    await dueWork.set([change('a', 1_000, 3)]);
    await dueWork.set([change('a', 2_000, 2)]);
    await dueWork.set([change('a', null, 2)]);
    expect(await rows()).toMatchObject([{ due_at_ms: String(nowMs + 1_000), revision: 3 }]);
    await dueWork.set([change('a', 3_000, 3)]);
    expect(await rows()).toMatchObject([{ due_at_ms: String(nowMs + 3_000), revision: 3 }]);
    await dueWork.set([change('a', null, 3)]);
    expect(await rows()).toEqual([]);
    await dueWork.set([change('a', null, 4)]);
    expect(await rows()).toEqual([]);
  });

  it('learns the provider of a row later, and does not forget it', async () => {
    await dueWork.set([change('a', -1, 1, '')]);
    await dueWork.set([change('a', -1, 1, 'payments')]);
    await dueWork.set([change('a', -1, 2, '')]);
    expect(await take({ payments: 1 })).toEqual(['a']);
  });

  it('hands out the rows of providers that are not in the list', async () => {
    await dueWork.set([change('a', -1), change('g', -1, 0, 'gone'), change('n', -3, 0, ''), change('later', 60_000, 0, 'gone')]);
    const others = await dueWork.takeOthers(['payments', 'mail'], 8, HIDE_MS);
    expect(others).toEqual([
      { operationId: 'n', provider: '' },
      { operationId: 'g', provider: 'gone' },
    ]);
    expect(await dueWork.takeOthers(['payments', 'mail'], 8, HIDE_MS)).toEqual([]);
    expect(await dueWork.takeOthers([], 8, HIDE_MS)).toEqual([{ operationId: 'a', provider: 'payments' }]);
  });

  it('survives writers that set the same operations in opposite orders', async () => {
    const names = Array.from({ length: 400 }, (_, n) => `op-${String(n).padStart(3, '0')}`);
    const write = async (ids: readonly string[], round: number) => {
      await dueWork.set(ids.map((id) => change(id, round, round)));
      await dueWork.set(ids.map((id) => change(id, null, round)));
    };
    const reversed = [...names].reverse();
    // Rounds enough for two of the eight connections to meet in the middle many times.
    for (let round = 0; round < 15; round++)
      await Promise.all([write(names, round), write(reversed, round), write(names, round), write(reversed, round)]);
    expect(await rows()).toEqual([]);
  });
});
