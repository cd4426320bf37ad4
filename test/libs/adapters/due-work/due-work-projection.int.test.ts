import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DueWorkProjection } from '#adapters/due-work/due-work-projection.js';
import { PostgresDueWork } from '#adapters/due-work/postgres-due-work.js';
import { streamOf, type RecordedEvent } from '#domain';
import { behave } from '../../../support/dispatcher-provider.js';
import type { DispatcherNode } from '../../../support/dispatcher-node.js';
import { createDispatcherWorld, type DispatcherWorld } from '../../../support/dispatcher-world.js';

describe('the due work kept from events', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  function projectionOf(node: DispatcherNode) {
    let woken = 0;
    const projection = new DueWorkProjection(
      new PostgresDueWork(world.pool),
      node.log,
      () => node.clock.nowMs(),
      () => woken++,
    );
    return { projection, woken: () => woken };
  }
  const all = (node: DispatcherNode): Promise<readonly RecordedEvent[]> => node.log.readAll(0n, 10_000);
  const start = (node: DispatcherNode, id: string) => node.command(id, { type: 'StartAttempt', attemptId: randomUUID(), worker: 'w0' });

  it('tells of a planned operation at once, and of a claimed one when its lease ends', async () => {
    world.provider('payments', 'c');
    const node = await world.node();
    const { projection, woken } = projectionOf(node);
    const id = await world.plan(node, 'payments');
    await projection.handle(await all(node));
    expect(await world.dueRows()).toMatchObject([{ operation_id: id, provider: 'payments', revision: 0 }]);
    expect(woken()).toBe(1);
    await start(node, id);
    await projection.handle((await all(node)).slice(1));
    const state = await world.state(id);
    expect(await world.dueRows()).toMatchObject([
      { operation_id: id, provider: 'payments', revision: 1, due_at_ms: String((state as { leaseUntilMs: number }).leaseUntilMs) },
    ]);
    expect(woken()).toBe(1);
  });

  it('leaves no row for what began and ended within one batch, and drops the row of what ended later', async () => {
    world.provider('payments', 'c');
    const node = await world.node();
    const { projection } = projectionOf(node);
    const cancel = { type: 'CancelOperation', reason: 'test' } as const;
    const [short, long] = [await world.plan(node, 'payments'), await world.plan(node, 'payments')];
    await node.command(short, cancel);
    const first = await all(node);
    await projection.handle(first);
    expect(await world.dueRows()).toMatchObject([{ operation_id: long }]);
    await node.command(long, cancel);
    await projection.handle((await all(node)).slice(first.length));
    expect(await world.dueRows()).toEqual([]);
  });

  it('gives the same rows when events are delivered again, in other batches, or late', async () => {
    world.provider('payments', 'c', { lease_ms: 10_000 });
    const node = await world.node();
    const { projection } = projectionOf(node);
    const ids = await world.planMany(node, 'payments', 3);
    for (const id of ids) await start(node, id);
    const events = await all(node);
    await projection.handle(events);
    const rows = await world.dueRows();
    expect(rows).toHaveLength(3);
    for (const event of events) await projection.handle([event]);
    expect(await world.dueRows()).toEqual(rows);
    await projection.handle(events.filter(({ revision }) => revision === 0));
    expect(await world.dueRows()).toEqual(rows);
    await projection.handle(events);
    expect(await world.dueRows()).toEqual(rows);
  });

  it('takes the latest event of an operation where one call holds older ones behind it', async () => {
    world.provider('payments', 'c', { lease_ms: 10_000 });
    const node = await world.node();
    const { projection } = projectionOf(node);
    const id = await world.plan(node, 'payments');
    await start(node, id);
    const events = await all(node);
    await projection.handle([...events, ...events.slice(0, 1)]);
    expect(await world.dueRows()).toMatchObject([{ operation_id: id, revision: 1 }]);
  });

  it('changes nothing for evidence that changes nothing', async () => {
    world.provider('payments', 'c', { lease_ms: 10_000 });
    const node = await world.node();
    const { projection } = projectionOf(node);
    const id = await world.plan(node, 'payments');
    await start(node, id);
    const events = await all(node);
    await projection.handle(events);
    const rows = await world.dueRows();
    const evidence: RecordedEvent = {
      ...events[1]!,
      revision: 2,
      event: {
        type: 'EvidenceRecorded',
        data: { attempt: 1, kind: 'webhook', verdict: 'unknown', code: null, provider_operation_id: null, contradicts: false },
      },
    };
    await projection.handle([evidence]);
    expect(await world.dueRows()).toEqual(rows);
    await projection.handle([events[1]!, evidence]);
    expect(await world.dueRows()).toMatchObject([{ due_at_ms: rows[0]!.due_at_ms, provider: 'payments' }]);
  });

  it('names the provider of a row that comes back after it was gone', async () => {
    const provider = world.provider('payments', 'c', { lookup: null, on_unknown: ['review'] });
    provider.next(behave.acceptHang);
    const node = await world.node();
    const id = await world.plan(node, 'payments');
    await node.work();
    await world.untilEvent(id, 'ReviewRequested');
    while ((await node.feed.runOnce()) > 0);
    expect(await world.dueRows()).toEqual([]);
    const events = await all(node);
    const granted: RecordedEvent = {
      ...events[0]!,
      revision: events.length,
      event: {
        type: 'ReviewDecided',
        data: { decision: 'retry_once', decision_id: null, actor: 'p', reason: 'r', evidence: null, based_on_revision: 3 },
      },
    };
    const { projection, woken } = projectionOf(node);
    await projection.handle([granted]);
    expect(await world.dueRows()).toMatchObject([{ operation_id: id, provider: 'payments' }]);
    expect(woken()).toBe(1);
  });

  it('is not stopped by an event without a readable time: it is looked at at once', async () => {
    world.provider('payments', 'c');
    const node = await world.node();
    const { projection, woken } = projectionOf(node);
    const [broken, healthy] = [await world.plan(node, 'payments'), await world.plan(node, 'payments')];
    await start(node, broken);
    const events = await all(node);
    const spoilt = events.map((each) =>
      each.event.type === 'AttemptStarted'
        ? { ...each, event: { ...each.event, data: { ...each.event.data, lease_until: 'soon' } } }
        : each,
    );
    await projection.handle(spoilt);
    expect((await world.dueRows()).map(({ operation_id: id }) => id).sort()).toEqual([broken, healthy].sort());
    expect(woken()).toBe(1);
  });

  it('is rebuilt from the log alone, and the rebuilt rows cause no call for anything finished (law 8)', async () => {
    const provider = world.provider('payments', 'c', { lease_ms: 60_000 });
    const node = await world.node();
    const ids = await world.planMany(node, 'payments', 12);
    const [waiting, declined, doubtful, held] = ids as [string, string, string, string];
    provider.nextFor(waiting, behave.tooMany(3_600_000));
    provider.nextFor(declined, behave.decline);
    provider.nextFor(doubtful, behave.acceptHang);
    provider.onLookUp = () => ({ verdict: 'inconclusive', code: 'two', anomaly: 'two_matches', providerOperationId: null, result: null });
    const pause = world.pause();
    provider.nextFor(held, behave.paused(pause, behave.ok));
    await node.work(12);
    await pause.reached;
    await world.untilEvent(doubtful, 'OutcomeUnknown');
    node.start();
    await world.untilEvent(doubtful, 'ReviewRequested');
    await world.until('finished rows are gone', async () => (await world.dueRows()).length === 2);
    const rows = await world.dueRows();
    const head = await node.log.head();
    const { calls, lookUps } = provider;
    pause.release();
    await world.untilStatus(held, 'succeeded');
    await node.close();
    await world.pool.query('delete from onefold.events where position > $1', [String(head)]);

    await world.pool.query('truncate onefold.due_work, onefold.checkpoints');
    const rebuilding = await world.node();
    while ((await rebuilding.feed.runOnce()) > 0);
    expect(await world.dueRows()).toEqual(rows);
    expect(rows.map(({ operation_id: id }) => id).sort()).toEqual([waiting, held].sort());
    for (let round = 0; round < 3; round++) await rebuilding.round();
    // A row for everything that ever was, as if nothing had been dropped: still no call.
    await world.pool.query(
      `insert into onefold.due_work select substr(stream, 11), 'payments', 0, 0 from onefold.events where revision = 0 on conflict do nothing`,
    );
    while ((await rebuilding.dispatcher.runOnce()) > 0);
    expect([provider.calls, provider.lookUps]).toEqual([calls, lookUps]);
    expect(streamOf('x')).toHaveLength(11);
    expect((await world.dueRows()).map(({ operation_id: id }) => id).sort()).toEqual([waiting, held].sort());
  });
});
