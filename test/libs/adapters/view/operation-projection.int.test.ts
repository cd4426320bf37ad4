import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { DirectFeed, type CheckpointStore } from '#adapters/feed/direct-feed.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { EventMissingFromLog, OPERATION_VIEW, OperationProjection } from '#adapters/view/operation-projection.js';
import { digestOfView } from '#adapters/view/view-digest.js';
import type { OperationEvent, RecordedEvent } from '#domain';
import { digestOfFold, foldLog, Histories, openViewDatabase, T0, type ViewDatabase } from './view-fixture.js';

let database: ViewDatabase;
let histories: Histories;
let projection: OperationProjection;

beforeAll(async () => {
  database = await openViewDatabase();
});
beforeEach(async () => {
  await database.pool.query('truncate onefold.operation_view, onefold.checkpoints');
  histories = new Histories();
  projection = new OperationProjection(database.pool, histories.log);
});
afterAll(() => database.close());

async function rowOf(operationId: string): Promise<Record<string, unknown> | undefined> {
  const text = 'select *, xmin::text as written_by from onefold.operation_view where operation_id = $1';
  const { rows } = await database.pool.query<Record<string, unknown>>(text, [operationId]);
  return rows[0];
}

async function expectViewToBeTheFold(events: readonly RecordedEvent[]): Promise<void> {
  expect(await digestOfView(database.pool)).toEqual(digestOfFold(foldLog(events)));
}

describe('the projection of the status view', () => {
  it('writes one row an operation, with what lists filter and order by', async () => {
    const identity = { workflow_id: 'case-1', step: 'pay', revision: 2 };
    const operationId = await histories.plan({ identity });
    histories.nowMs = T0 + 1_500;
    await histories.succeed(operationId, 'po_77');
    await projection.handle(await histories.events());
    const row = (await rowOf(operationId))!;
    expect(row).toMatchObject({
      tenant: 't1',
      revision: 2,
      position: '1',
      status: 'succeeded',
      action_type: 'refund.create',
      workflow_id: 'case-1',
      updated_at: new Date(T0 + 1_500),
    });
    expect([...(row['terms'] as string[])].sort()).toEqual(['t1/a/refund.create', 't1/i/2', 't1/i/case-1', 't1/i/pay', 't1/i/po_77']);
    expect(JSON.parse(row['state'] as string)).toMatchObject({ status: 'succeeded', revision: 2, providerOperationId: 'po_77' });
  });

  it('keeps the payload out of the view, sealed as it is', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    await projection.handle(await histories.events());
    expect(JSON.stringify(await rowOf(operationId))).not.toContain('sealed-payload');
  });

  it('changes nothing on a repeated batch, and only the new part of an overlapping one', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    await histories.loseAnswer(operationId);
    const first = await histories.events();
    await projection.handle(first);
    const before = await rowOf(operationId);
    await projection.handle(first);
    await new OperationProjection(database.pool, histories.log).handle(first.slice(1));
    expect(await rowOf(operationId)).toEqual(before);
    await histories.succeed(operationId, 'po_1');
    const all = await histories.events();
    await projection.handle(all.slice(1));
    expect(await rowOf(operationId)).toMatchObject({ revision: 3, status: 'succeeded', position: '1' });
    await expectViewToBeTheFold(all);
  });

  it('is not thrown back by older events that arrive late', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    await histories.succeed(operationId, 'po_1');
    const events = await histories.events();
    for (const index of [2, 0, 1, 2, 1, 0]) await projection.handle([events[index]!]);
    await expectViewToBeTheFold(events);
    expect(await rowOf(operationId)).toMatchObject({ revision: 2 });
  });

  it('reads the stream at a gap, and folds it no further than the batch goes', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    await histories.loseAnswer(operationId);
    await histories.succeed(operationId, 'po_1');
    const events = await histories.events();
    await projection.handle([events[0]!]);
    await projection.handle([events[2]!]);
    expect(await rowOf(operationId)).toMatchObject({ revision: 2, status: 'unknown', position: '1' });
    await projection.handle([events[3]!]);
    await expectViewToBeTheFold(events);
  });

  it('refuses a gap that the log can not fill, and writes nothing of the batch', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    const other = await histories.plan({ identity: { order: 2 } });
    const events = await histories.events();
    const beyond = { ...events[1]!, revision: 5 };
    await expect(projection.handle([...events.slice(2), beyond])).rejects.toThrow(EventMissingFromLog);
    expect(await rowOf(operationId)).toBeUndefined();
    expect(await rowOf(other)).toBeUndefined();
  });

  it('passes over a type of event that this version does not know, without taking it for a gap', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    const [planned, started] = await histories.events();
    const unknown = { ...started!, event: { type: 'OperationAnnotated', data: {} } as unknown as OperationEvent };
    const next = { ...started!, revision: 2, position: 3n };
    await projection.handle([planned!, unknown]);
    await projection.handle([next]);
    expect(await rowOf(operationId)).toMatchObject({ revision: 2, status: 'executing' });
  });

  it('writes the whole row again where a crash of the database has lost it', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    const events = await histories.events();
    await projection.handle(events);
    await database.pool.query('truncate onefold.operation_view');
    await histories.succeed(operationId, 'po_1');
    const all = await histories.events();
    await projection.handle(all.slice(events.length));
    await expectViewToBeTheFold(all);
  });

  it('believes the table again after a failure, not what it had written itself', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    const events = await histories.events();
    await projection.handle(events);
    // As after a fail-over to a server that never got the last rows.
    await database.pool.query(`update onefold.operation_view set revision = 0, state = $1`, [
      JSON.stringify(foldLog(events.slice(0, 1)).get(operationId)!.state),
    ]);
    await expect(projection.handle([{ ...events[1]!, revision: 9 }])).rejects.toThrow(EventMissingFromLog);
    await histories.loseAnswer(operationId);
    const next = (await histories.events()).slice(2);
    const readStreams = vi.spyOn(histories.log, 'readStreams');
    await projection.handle(next);
    expect(readStreams).toHaveBeenCalledOnce();
    await expectViewToBeTheFold(await histories.events());
  });

  it('comes to the same with two of them at work on the same events', async () => {
    for (let order = 0; order < 60; order++) {
      const operationId = await histories.plan({ identity: { order } });
      if (order % 3 === 0) await histories.succeed(operationId, `po_${order}`);
    }
    const events = await histories.events();
    const other = new OperationProjection(database.pool, histories.log);
    const inSteps = async (consumer: OperationProjection, size: number) => {
      for (let from = 0; from < events.length; from += size) await consumer.handle(events.slice(from, from + size));
    };
    await Promise.all([inSteps(projection, 7), inSteps(other, 11)]);
    await expectViewToBeTheFold(events);
  });

  it('counts nothing twice after a crash between the write of the view and its checkpoint', async () => {
    const operationId = await histories.plan({ identity: { order: 1 } });
    await histories.loseAnswer(operationId);
    const durable = new Checkpoints(database.pool);
    const crashing: CheckpointStore = {
      load: (name) => durable.load(name),
      advance: () => Promise.reject(new Error('killed')),
    };
    const feed = (checkpoints: CheckpointStore) => {
      const consumer = new OperationProjection(database.pool, histories.log);
      return new DirectFeed({ log: histories.log, checkpoints, consumer, gatherMs: 0, onError: () => undefined });
    };
    await expect(feed(crashing).runOnce()).rejects.toThrow('killed');
    expect(await rowOf(operationId)).toMatchObject({ revision: 2 });
    expect(await durable.load(OPERATION_VIEW)).toBe(0n);
    await feed(durable).runOnce();
    expect(await durable.load(OPERATION_VIEW)).toBe(3n);
    expect(JSON.parse((await rowOf(operationId))!['state'] as string)).toMatchObject({
      status: 'unknown',
      history: { count: 1, unresolved: [1] },
    });
    await expectViewToBeTheFold(await histories.events());
  });
});
