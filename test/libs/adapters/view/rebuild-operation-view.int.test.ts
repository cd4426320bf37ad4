import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import { DirectFeed } from '#adapters/feed/direct-feed.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { OPERATION_VIEW, OperationProjection } from '#adapters/view/operation-projection.js';
import { PostgresOperationView } from '#adapters/view/postgres-operation-view.js';
import { RebuildOvertaken, RebuildUnderWay, rebuildOperationView } from '#adapters/view/rebuild-operation-view.js';
import { digestOfView } from '#adapters/view/view-digest.js';
import { digestOfFold, foldLog, Histories, openViewDatabase, type ViewDatabase } from './view-fixture.js';

let database: ViewDatabase;
let log: PostgresEventLog;
let histories: Histories;
let checkpoints: Checkpoints;
let orders = 0;

/** More than one batch of a rebuild, so that there is a between. */
const OPERATIONS = 1_200;

async function plan(count: number): Promise<string[]> {
  const planned = Array.from({ length: count }, () => histories.plan({ identity: { order: orders++, step: 'pay' } }));
  return Promise.all(planned);
}

beforeAll(async () => {
  database = await openViewDatabase();
  log = new PostgresEventLog(database.pool, { url: database.url, hashing: nodeHashing });
  histories = new Histories(log);
  checkpoints = new Checkpoints(database.pool);
  const planned = await plan(OPERATIONS);
  await Promise.all(planned.slice(0, 700).map((operationId, n) => histories.succeed(operationId, `po_${n}`)));
});
beforeEach(async () => {
  await database.pool.query('truncate onefold.operation_view, onefold.checkpoints');
});
afterAll(async () => {
  await log.close();
  await database.close();
});

const options = () => ({ pool: database.pool, log });
const startFeed = () => {
  const errors: Error[] = [];
  const consumer = new OperationProjection(database.pool, log);
  const feed = new DirectFeed({ log, checkpoints, consumer, gatherMs: 1, onError: (error) => errors.push(error) });
  feed.start();
  return { feed, errors };
};
const foldDigest = async () => digestOfFold(foldLog(await histories.events()));

async function runToEnd(): Promise<void> {
  const consumer = new OperationProjection(database.pool, log);
  const feed = new DirectFeed({ log, checkpoints, consumer, gatherMs: 0, onError: () => undefined });
  while ((await feed.runOnce()) > 0);
}

/** Everything about the table that a migration gave it. */
async function shape(): Promise<unknown> {
  const { rows } = await database.pool.query(
    `select c.reloptions, (select json_agg(indexdef order by indexdef) from pg_indexes where tablename = 'operation_view') as indexes,
       (select json_agg((attname, format_type(atttypid, atttypmod), attnotnull, col_description(c.oid, attnum), attcollation) order by attnum)
        from pg_attribute where attrelid = c.oid and attnum > 0) as columns,
       (select json_agg(conname order by conname) from pg_constraint where conrelid = c.oid) as constraints
     from pg_class c where c.oid = 'onefold.operation_view'::regclass`,
  );
  return rows[0];
}

const nextTable = async () =>
  (await database.pool.query<{ next: string | null }>(`select to_regclass('onefold.operation_view_next')::text as next`)).rows[0]!.next;

describe('a rebuild of the status view', () => {
  it('gives what the live projection gave, in a table of the same shape, and moves the checkpoint', async () => {
    await runToEnd();
    const live = await digestOfView(database.pool);
    const before = await shape();
    expect(live).toEqual(await foldDigest());
    for (let time = 0; time < 2; time++) {
      const { events, position } = await rebuildOperationView(options());
      expect(position).toBe(await log.head());
      expect(BigInt(events)).toBe(position);
      expect(await digestOfView(database.pool)).toEqual(live);
      expect(await shape()).toEqual(before);
      expect(await checkpoints.load(OPERATION_VIEW)).toBe(position);
      expect(await nextTable()).toBeNull();
    }
  });

  it('repairs a view that was damaged', async () => {
    await runToEnd();
    await database.pool.query(`update onefold.operation_view set revision = 99, status = 'planned' where position < 50`);
    await database.pool.query(`insert into onefold.operation_view select 'op_made_up', tenant, revision, 0, status, action_type,
      workflow_id, updated_at, terms, state from onefold.operation_view limit 1`);
    await rebuildOperationView(options());
    expect(await digestOfView(database.pool)).toEqual(await foldDigest());
  });

  it('ends up equal to the fold while operations go on, the live view is written and lists are read', async () => {
    await runToEnd();
    const { feed, errors } = startFeed();
    const view = new PostgresOperationView(database.pool);
    let rebuilding = true;
    let lists = 0;
    const readLists = (async () => {
      while (rebuilding) {
        const page = await view.list({
          tenant: 't1',
          status: null,
          actionType: null,
          workflowId: null,
          term: null,
          cursor: null,
          limit: 10,
        });
        expect(page.operations).toHaveLength(10);
        lists++;
      }
    })();
    const work: Promise<unknown>[] = [];
    let batches = 0;
    const { position } = await rebuildOperationView({
      ...options(),
      onProgress: () => {
        batches++;
        work.push(plan(40).then((planned) => Promise.all(planned.map((operationId) => histories.succeed(operationId, null)))));
      },
    });
    rebuilding = false;
    await Promise.all([...work, readLists]);
    await plan(5);
    const head = await log.head();
    while ((await checkpoints.load(OPERATION_VIEW)) < head) await new Promise((resolve) => setTimeout(resolve, 20));
    await feed.stop();
    expect(errors).toEqual([]);
    expect(lists).toBeGreaterThan(0);
    expect(batches).toBeGreaterThan(1);
    expect(position).toBeLessThan(head);
    expect(await digestOfView(database.pool)).toEqual(await foldDigest());
  });

  it('leaves the live view as it was when it is ended half-way, and begins again the next time', async () => {
    await runToEnd();
    const live = await digestOfView(database.pool);
    const ended = new AbortController();
    const onProgress = () => ended.abort(new Error('ended by a person'));
    await expect(rebuildOperationView({ ...options(), signal: ended.signal, onProgress })).rejects.toThrow('ended by a person');
    expect(await nextTable()).toBeNull();
    expect(await digestOfView(database.pool)).toEqual(live);
    // A killed rebuild leaves its table behind, with whatever it had in it.
    await database.pool.query('create table onefold.operation_view_next (like onefold.operation_view including all)');
    await database.pool.query('insert into onefold.operation_view_next select * from onefold.operation_view limit 5');
    await database.pool.query(`update onefold.operation_view_next set revision = 1000`);
    await rebuildOperationView(options());
    expect(await digestOfView(database.pool)).toEqual(live);
  });

  it('is one at a time', async () => {
    let second: Promise<unknown> | undefined;
    const onProgress = () => {
      second ??= rebuildOperationView(options());
      // Looked at below; until then it must not count as unhandled.
      second.catch(() => undefined);
    };
    await rebuildOperationView({ ...options(), onProgress });
    await expect(second).rejects.toThrow(RebuildUnderWay);
  });

  it('gives up, and changes nothing, where a reader never lets go of the live table', async () => {
    await runToEnd();
    const reader = await database.pool.connect();
    try {
      await reader.query('begin; select count(*) from onefold.operation_view');
      await expect(rebuildOperationView(options())).rejects.toThrow(RebuildOvertaken);
    } finally {
      await reader.query('rollback');
      reader.release();
    }
    expect(await nextTable()).toBeNull();
    expect(await digestOfView(database.pool)).toEqual(await foldDigest());
  });
});
