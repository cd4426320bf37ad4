import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DueWorkProjection } from '#adapters/due-work/due-work-projection.js';
import { DirectFeed } from '#adapters/feed/direct-feed.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { OperationProjection } from '#adapters/view/operation-projection.js';
import { rebuildOperationView } from '#adapters/view/rebuild-operation-view.js';
import type { RecordedEvent } from '#domain';
import type { DispatcherNode } from '../support/dispatcher-node.js';
import { behave } from '../support/dispatcher-provider.js';
import { publicCase } from './registry.js';
import { CaseWorld, HOUR, SECOND } from './support/case-world.js';

let world: CaseWorld;
beforeAll(async () => {
  world = await CaseWorld.open();
});
afterEach(async () => {
  await world.dispatchers.pool.query('delete from onefold.operation_view');
  await world.reset();
});
afterAll(() => world.close());

const projectionOf = (node: DispatcherNode) =>
  new DueWorkProjection(
    node.dueWork,
    node.log,
    () => node.clock.nowMs(),
    () => node.dispatcher.wake(),
  );
const forgetPositions = () => world.dispatchers.pool.query('delete from onefold.checkpoints');
const viewRows = async () =>
  (
    await world.dispatchers.pool.query<{ operation_id: string; revision: number }>(
      'select operation_id, revision from onefold.operation_view',
    )
  ).rows;

describe(publicCase('37'), () => {
  it(
    '1,000 commands, the feed killed about half-way, two successors under other names: 1,000 effects, each once',
    { timeout: 120_000 },
    async () => {
      const { dispatchers } = world;
      const provider = world.provider('c');
      const dying = (await dispatchers.node({ worker: 'w-first' })).start();
      const ids = await dispatchers.planMany(dying, 'payments', 1_000);
      await dispatchers.until('half of them are sent', () => provider.calls >= 500);
      // What is under way goes on until its connections are gone, as in a process that is being killed.
      void dying.dispatcher.stop();
      void dying.feed.stop();
      await dying.kill();
      // Until somebody goes on, the backlog stands there as a figure that an alarm can watch.
      const successors = [await dispatchers.node({ worker: 'w-second' }), await dispatchers.node({ worker: 'w-third' })];
      await dispatchers.moveClock(11 * SECOND);
      expect(await successors[0]!.feed.lag()).toBeGreaterThan(0);
      for (const node of successors) node.start();
      await expect.poll(() => provider.effects, { timeout: 90_000, interval: 200 }).toBe(1_000);
      await expect.poll(async () => (await dispatchers.dueRows()).length, { timeout: 60_000, interval: 500 }).toBe(0);
      // The dead one's position turns up late, and everything is handed over again.
      await forgetPositions();
      const calls = provider.calls;
      await dispatchers.closeNodes();
      const last = await dispatchers.node({ worker: 'w-fourth' });
      expect(await last.feed.lag()).toBeGreaterThanOrEqual(3_000);
      await last.round();
      expect(provider.calls).toBe(calls);
      expect(new Set(ids.map((id) => provider.ledger(id).effects))).toEqual(new Set([1]));
    },
  );
});

describe(publicCase('38'), () => {
  /** One operation that is finished, and its events. */
  async function finished() {
    const { dispatchers } = world;
    const provider = world.provider('f');
    const node = await dispatchers.node();
    const id = await dispatchers.plan(node, 'payments');
    await node.work();
    await dispatchers.untilStatus(id, 'succeeded');
    return { provider, node, id, events: await dispatchers.events(id) };
  }

  it('the same record to two consumers at once: one call', async () => {
    const { dispatchers } = world;
    const provider = world.provider('f');
    const nodes = [await dispatchers.node(), await dispatchers.node()];
    const id = await dispatchers.plan(nodes[0]!, 'payments');
    const records = await dispatchers.events(id);
    await Promise.all(nodes.map((node) => projectionOf(node).handle(records)));
    const [row] = await dispatchers.dueRows();
    // Both are handed the row, too, as after a redelivery.
    for (const { dueWork } of nodes)
      Object.assign(dueWork, { take: async () => [{ operationId: row!.operation_id, provider: row!.provider }] });
    await Promise.all(nodes.map((node) => node.dispatcher.runOnce()));
    await dispatchers.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('events of one stream in the order 2, 3, 1: the stream decides, nothing is called, and the view is right', async () => {
    const { provider, node, id, events } = await finished();
    const [first, second, third] = events as [RecordedEvent, RecordedEvent, RecordedEvent];
    const view = new OperationProjection(node.pool, node.log);
    for (const event of [second, third, first]) {
      await projectionOf(node).handle([event]);
      await view.handle([event]);
    }
    await node.dispatcher.runOnce();
    await node.dispatcher.runOnce();
    expect(await dispatchers().dueRows()).toEqual([]);
    expect(await viewRows()).toEqual([{ operation_id: id, revision: 2 }]);
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('the group is set back to the beginning after 8 days: old records of finished operations cause no call', async () => {
    const { provider, id, events } = await finished();
    await dispatchers().closeNodes();
    await dispatchers().moveClock(8 * 24 * HOUR);
    await forgetPositions();
    await dispatchers().pool.query('delete from onefold.due_work');
    const node = await dispatchers().node();
    await projectionOf(node).handle([events[0]!]);
    for (let round = 0; round < 3; round++) await node.round();
    expect(await dispatchers().events(id)).toEqual(events);
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('an operation whose key was destroyed fails visibly and holds up no other', async () => {
    const provider = world.provider('f');
    const node = await dispatchers().node();
    const [poisoned, sound] = [await dispatchers().plan(node, 'payments'), await dispatchers().plan(node, 'payments')];
    await node.dataKeys.destroy(poisoned);
    node.start();
    await dispatchers().untilStatus(poisoned, 'failed_final');
    await dispatchers().untilStatus(sound, 'succeeded');
    expect(await dispatchers().state(poisoned)).toMatchObject({ code: 'payload_erased' });
    expect(provider.ledger(poisoned).calls).toBe(0);
    expect(provider.ledger(sound)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('a handler that takes longer than the poll interval is not called again', async () => {
    const provider = world.provider('f');
    const pause = dispatchers().pause();
    provider.next(behave.paused(pause, behave.ok));
    const nodes = [(await dispatchers().node()).start(), (await dispatchers().node()).start()];
    const id = await dispatchers().plan(nodes[0]!, 'payments');
    await pause.reached;
    // Both poll on meanwhile, and are handed the record again.
    for (let poll = 0; poll < 3; poll++) for (const node of nodes) await projectionOf(node).handle(await dispatchers().events(id));
    for (const node of nodes) await node.dispatcher.runOnce();
    pause.release();
    await dispatchers().untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  const dispatchers = () => world.dispatchers;
});

describe(publicCase('39'), () => {
  it('(c), (d) everything rebuilt and read from the beginning with live adapters attached: no call', async () => {
    const { dispatchers } = world;
    const provider = world.provider('f');
    provider.next(behave.ok, behave.acceptHang, behave.decline);
    const node = await dispatchers.node();
    const ids = await dispatchers.planMany(node, 'payments', 3);
    await node.work(3);
    await dispatchers.until('all are settled', async () =>
      (await Promise.all(ids.map((id) => dispatchers.types(id)))).every(({ length }) => length > 2),
    );
    const before = await Promise.all(ids.map((id) => dispatchers.events(id)));
    await rebuildOperationView({ pool: node.pool, log: node.log });
    await forgetPositions();
    await dispatchers.pool.query('delete from onefold.due_work');
    for (let round = 0; round < 3; round++) await node.round();
    const checkpoints = new Checkpoints(node.pool);
    const consumer = Object.assign(Object.create(projectionOf(node)) as DueWorkProjection, { name: 'another-group' });
    const fresh = new DirectFeed({ log: node.log, checkpoints, consumer, gatherMs: 0, onError: () => undefined });
    while ((await fresh.runOnce()) > 0);
    for (let round = 0; round < 3; round++) await node.round();
    expect(provider).toMatchObject({ calls: 3, effects: 2 });
    expect(await Promise.all(ids.map((id) => dispatchers.events(id)))).toEqual(before);
  });

  it('(e) the projector killed between its write and its checkpoint: nothing is counted twice', async () => {
    const { dispatchers } = world;
    world.provider('f');
    const node = await dispatchers.node();
    await dispatchers.planMany(node, 'payments', 3);
    await node.work(3);
    await dispatchers.until('all are settled', async () => (await node.log.head()) === 9n);
    const checkpoints = new Checkpoints(node.pool);
    const consumer = new OperationProjection(node.pool, node.log);
    const options = { log: node.log, consumer, gatherMs: 0, onError: () => undefined };
    const dies = { load: (name: string) => checkpoints.load(name), advance: () => Promise.reject(new Error('killed')) };
    await expect(new DirectFeed({ ...options, checkpoints: dies }).runOnce()).rejects.toThrow('killed');
    const written = await viewRows();
    expect(await new DirectFeed({ ...options, consumer: new OperationProjection(node.pool, node.log), checkpoints }).runOnce()).toBe(9);
    expect(await viewRows()).toEqual(written);
    expect(written.map(({ revision }) => revision)).toEqual([2, 2, 2]);
  });
});
