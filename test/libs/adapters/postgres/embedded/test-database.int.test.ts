import { afterAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../../support/test-database.js';
import { query } from './query.js';

describe('a test database', () => {
  const made: TestDatabase[] = [];
  afterAll(() => Promise.all(made.map((each) => each.drop())));

  it('is empty, and apart from others made at the same time', async () => {
    made.push(...(await Promise.all([createTestDatabase(), createTestDatabase()])));
    const [one, other] = made.map(({ url }) => url) as [string, string];
    await query(one, 'create table mine (id int)');
    const tables = await query(other, `select count(*)::int as tables from pg_tables where schemaname = 'public'`);
    expect(tables).toEqual([{ tables: 0 }]);
  });

  it('can be dropped while a session is open, and twice', async () => {
    const database = await createTestDatabase();
    const sleeping = query(database.url, 'select pg_sleep(60)').catch((error: { code: string }) => error.code);
    const isAsleep = `select count(*)::int as sleeping from pg_stat_activity where datname = current_database() and query like 'select pg_sleep%'`;
    await expect.poll(() => query(database.url, isAsleep), { timeout: 20_000 }).toEqual([{ sleeping: 1 }]);
    await database.drop();
    expect(await sleeping).toBe('57P01'); // admin_shutdown
    await database.drop();
    await expect(query(database.url, 'select 1')).rejects.toMatchObject({ code: '3D000' });
  });
});
