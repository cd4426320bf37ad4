import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OperationProjection } from '#adapters/view/operation-projection.js';
import { PostgresOperationView } from '#adapters/view/postgres-operation-view.js';
import { InvalidCursor, type ListQuery } from '#domain';
import { Histories, openViewDatabase, type Intent, type ViewDatabase } from './view-fixture.js';

let database: ViewDatabase;
let view: PostgresOperationView;
let projection: OperationProjection;
const histories = new Histories();
let projected = 0;

/** Brings the view up to the end of the log. */
async function project(): Promise<void> {
  const events = await histories.events();
  await projection.handle(events.slice(projected));
  projected = events.length;
}

const ANY: ListQuery = { tenant: 't1', status: null, actionType: null, workflowId: null, term: null, cursor: null, limit: 20 };
const ids = async (filters: Partial<ListQuery>) =>
  (await view.list({ ...ANY, ...filters })).operations.map(({ facts }) => facts.operationId);

const intent = (n: number, more: Partial<Intent> = {}): Intent => ({
  identity: { workflow_id: `case-${n % 3}`, step: 'pay', order: n },
  actionType: n % 4 === 0 ? 'mail.send' : 'refund.create',
  ...more,
});
/** Planned in this order, so `made[0]` is the oldest. */
const made: string[] = [];

beforeAll(async () => {
  database = await openViewDatabase();
  view = new PostgresOperationView(database.pool);
  projection = new OperationProjection(database.pool, histories.log);
  for (let n = 0; n < 10; n++) made.push(await histories.plan(intent(n), { start: n !== 9 }));
  await histories.plan(intent(0, { tenant: 't2' }));
  await histories.succeed(made[0]!, 'po_zero');
  await histories.succeed(made[4]!, 'po_four');
  await histories.loseAnswer(made[5]!);
  await histories.fail(made[6]!);
  await project();
});
afterAll(() => database.close());

describe('a list of operations', () => {
  it('is newest first and holds one tenant only', async () => {
    expect(await ids({})).toEqual([...made].reverse());
    expect(await ids({ tenant: 't2' })).toEqual([histories.idOf(intent(0, { tenant: 't2' }))]);
    expect(await ids({ tenant: 't3' })).toEqual([]);
  });

  it('gives operations as they were folded', async () => {
    const { operations } = await view.list({ ...ANY, status: 'unknown' });
    expect(operations).toHaveLength(1);
    expect(operations[0]).toMatchObject({
      status: 'unknown',
      revision: 2,
      history: { count: 1, unresolved: [1] },
      facts: { tenant: 't1' },
    });
  });

  it('filters by status', async () => {
    expect(await ids({ status: 'succeeded' })).toEqual([made[4], made[0]]);
    expect(await ids({ status: 'unknown' })).toEqual([made[5]]);
    expect(await ids({ status: 'failed_final' })).toEqual([made[6]]);
    expect(await ids({ status: 'planned' })).toEqual([made[9]]);
    expect(await ids({ status: 'failed_retryable' })).toEqual([]);
    expect(await ids({ status: 'executing' })).toEqual([8, 7, 3, 2, 1].map((n) => made[n]));
  });

  it('filters by action type and by workflow, and by all together', async () => {
    expect(await ids({ actionType: 'mail.send' })).toEqual([8, 4, 0].map((n) => made[n]));
    expect(await ids({ workflowId: 'case-1' })).toEqual([7, 4, 1].map((n) => made[n]));
    expect(await ids({ actionType: 'mail.send', workflowId: 'case-1', status: 'succeeded', term: 'po_four' })).toEqual([made[4]]);
    expect(await ids({ actionType: 'mail.send', workflowId: 'case-1', status: 'unknown' })).toEqual([]);
  });

  it('does not take another field with the same value for the workflow', async () => {
    expect(await ids({ workflowId: 'pay' })).toEqual([]);
  });

  it('finds by operation id, identity value and provider id, exactly', async () => {
    expect(await ids({ term: made[3]! })).toEqual([made[3]]);
    expect(await ids({ term: 'po_four' })).toEqual([made[4]]);
    expect(await ids({ term: '7' })).toEqual([made[7]]);
    expect(await ids({ term: 'case-2' })).toEqual([8, 5, 2].map((n) => made[n]));
    expect(await ids({ term: 'pay', limit: 3 })).toEqual([9, 8, 7].map((n) => made[n]));
    for (const term of ['po_', 'PO_FOUR', 'po_four ', 'mail.send', 't1/i/pay', '%', 'null']) expect(await ids({ term })).toEqual([]);
    expect(await ids({ term: made[3]!, tenant: 't2' })).toEqual([]);
  });

  it('finds nothing by what no text can hold, instead of failing', async () => {
    expect(await ids({ term: 'a\u0000b' })).toEqual([]);
    expect(await ids({ workflowId: 'a\u0000b' })).toEqual([]);
    expect(await ids({ term: 'x'.repeat(10_000) })).toEqual([]);
  });

  it('finds both an operation by its id and those whose identity names it', async () => {
    const reversal = await histories.plan({ actionType: 'refund.reverse', identity: { reverses: made[2]! } });
    await project();
    expect(await ids({ term: made[2]! })).toEqual([reversal, made[2]]);
    await histories.run(reversal, [{ type: 'Conclude' }]);
  });

  it('goes on by its cursor to the end, unmoved by what is planned or settled meanwhile', async () => {
    const before = await ids({});
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const page = await view.list({ ...ANY, limit: 4, cursor });
      seen.push(...page.operations.map(({ facts }) => facts.operationId));
      cursor = page.nextCursor;
      await histories.plan(intent(100 + pages));
      await histories.succeed(made[pages + 1]!, `po_late_${pages}`);
      await project();
      pages++;
    } while (cursor !== null);
    expect(seen).toEqual(before);
    expect(pages).toBe(Math.ceil(before.length / 4));
  });

  it('has no next page where the last one is exactly full', async () => {
    const { operations, nextCursor } = await view.list({ ...ANY, actionType: 'refund.reverse', limit: 1 });
    expect(operations).toHaveLength(1);
    expect(nextCursor).toBeNull();
  });

  it('refuses a cursor of other filters, of another tenant, and what is none', async () => {
    const { nextCursor: cursor } = await view.list({ ...ANY, limit: 2 });
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
    await expect(view.list({ ...ANY, cursor, status: 'planned' })).rejects.toThrow(InvalidCursor);
    await expect(view.list({ ...ANY, cursor, tenant: 't2' })).rejects.toThrow(InvalidCursor);
    for (const none of ['', 'x', '====', `${cursor}AA`, Buffer.from('v1:1 or 1=1:0000000000000000').toString('base64url')]) {
      await expect(view.list({ ...ANY, cursor: none })).rejects.toThrow(InvalidCursor);
    }
  });

  it('refuses a limit out of 1-100', async () => {
    for (const limit of [0, 101, 1.5, Number.NaN]) await expect(view.list({ ...ANY, limit })).rejects.toThrow(RangeError);
  });

  it('asks the index of terms where a walk through the newest operations finds no page in time', async () => {
    const expected = await ids({ term: 'case-2' });
    const blocker = await database.pool.connect();
    try {
      await blocker.query('begin; lock table onefold.operation_view in access exclusive mode');
      const found = ids({ term: 'case-2' });
      const waiting = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%order by position + 0 %'`;
      await expect.poll(async () => (await database.pool.query<{ n: number }>(waiting)).rows[0]!.n, { timeout: 10_000 }).toBe(1);
      await blocker.query('rollback');
      expect(await found).toEqual(expected);
    } finally {
      blocker.release();
    }
  });

  it('gives up after two seconds, and gives its connection back', async () => {
    const blocker = await database.pool.connect();
    try {
      await blocker.query('begin; lock table onefold.operation_view in access exclusive mode');
      await expect(view.list(ANY)).rejects.toMatchObject({ code: '57014' });
    } finally {
      await blocker.query('rollback');
      blocker.release();
    }
    expect(await ids({ limit: 1 })).toHaveLength(1);
    expect(database.pool.idleCount).toBe(database.pool.totalCount);
  });
});
