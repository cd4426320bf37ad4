import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { migrate } from '#adapters/postgres/migrate.js';
import { ParkedRecords } from '#adapters/postgres/parked-records.js';
import { LogUnavailable } from '#domain';
import { createTestDatabase, type TestDatabase } from '../../../../support/test-database.js';

describe('The list of parked records', () => {
  let database: TestDatabase;
  let pool: Pool;
  let parked: ParkedRecords;

  beforeAll(async () => {
    database = await createTestDatabase();
    pool = openPool({ url: database.url });
    await migrate(pool);
    parked = new ParkedRecords(pool);
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  const record = (operationId: string | null, offset: bigint, reason = 'not_json') => ({
    consumer: 'due-work',
    topic: 'events',
    partition: 0,
    offset,
    operationId,
    reason,
  });

  it('holds a record once, as it was first put aside', async () => {
    await parked.add(record('op_a', 1n));
    await parked.add(record('op_a', 1n, 'refused'));
    await parked.add({ ...record('op_a', 1n), consumer: 'operation-view' });
    const rows = await parked.forOperation('op_a');
    expect(rows.map(({ consumer, reason }) => [consumer, reason]).sort()).toEqual([
      ['due-work', 'not_json'],
      ['operation-view', 'not_json'],
    ]);
  });

  it('takes the largest offset, and records of no operation', async () => {
    await parked.add(record(null, 2n));
    await parked.add(record('op_large', 2n ** 63n - 1n));
    const [row] = await parked.forOperation('op_large');
    expect(row).toMatchObject(record('op_large', 2n ** 63n - 1n));
    expect(Number.isInteger(row!.parkedAtMs)).toBe(true);
  });

  it('gives the newest hundred of each of many operations that are asked for at once', async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `op_many_${index}`);
    for (const [index, id] of ids.entries()) await parked.add(record(id, 1_000n + BigInt(index)));
    for (let offset = 0n; offset < 103n; offset++) await parked.add(record('op_often', 5_000n + offset));
    const [often, none, ...others] = await Promise.all(['op_often', 'op_none', ...ids].map((id) => parked.forOperation(id)));
    expect(often!.map(({ offset }) => offset)).toEqual(Array.from({ length: 100 }, (_, index) => 5_102n - BigInt(index)));
    expect(none).toEqual([]);
    expect(others.map(([row]) => row?.offset)).toEqual(ids.map((_, index) => 1_000n + BigInt(index)));
  });

  it('says that it can not be read where that is so', async () => {
    const away = openPool({ url: 'postgresql://onefold@127.0.0.1:1/none' });
    await expect(new ParkedRecords(away).forOperation('op_a')).rejects.toThrow(LogUnavailable);
    await away.end();
  });
});
