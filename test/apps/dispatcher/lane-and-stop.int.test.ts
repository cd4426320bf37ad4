import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { behave } from '../../support/dispatcher-provider.js';
import { createDispatcherWorld, type DispatcherWorld } from '../../support/dispatcher-world.js';

const limited = (concurrency: number) => ({ definitions: { payments: { limits: { concurrency, perSecond: null } } } });

describe('the attempt lane of a dispatcher', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('makes the claimed call and records it', async () => {
    const provider = world.provider('payments', 'c');
    const node = await world.node({ worker: 'w7' });
    const slot = node.dispatcher.reserve('payments')!;
    const { operationId, claimed } = await world.planAndClaim(node, 'payments', slot.worker);
    slot.run(claimed);
    await world.untilStatus(operationId, 'succeeded');
    expect(slot.worker).toBe('w7');
    expect(provider.ledger(operationId)).toMatchObject({ calls: 1, effects: 1 });
    while ((await node.feed.runOnce()) > 0);
    expect(await world.dueRows()).toEqual([]);
  });

  it('lends no more than there is, and takes back what was not used', async () => {
    world.provider('payments', 'c');
    const node = await world.node(limited(2));
    const slots = [node.dispatcher.reserve('payments')!, node.dispatcher.reserve('payments')!];
    expect([node.dispatcher.reserve('payments'), node.dispatcher.reserve('unheard-of')]).toEqual([null, null]);
    slots[0]!.release();
    const again = node.dispatcher.reserve('payments')!;
    expect(again).not.toBeNull();
    expect(node.dispatcher.reserve('payments')).toBeNull();
    for (const slot of [again, slots[1]!]) slot.release();
  });

  it('lets a slot be used once', async () => {
    const provider = world.provider('payments', 'c');
    const node = await world.node(limited(1));
    const released = node.dispatcher.reserve('payments')!;
    released.release();
    const { operationId, claimed } = await world.planAndClaim(node, 'payments', 'w0');
    expect(() => released.run(claimed)).toThrow('once');
    expect(() => released.release()).toThrow('once');
    const used = node.dispatcher.reserve('payments')!;
    used.run(claimed);
    expect(() => used.run(claimed)).toThrow('once');
    expect(() => used.release()).toThrow('once');
    await world.untilStatus(operationId, 'succeeded');
    expect(provider.calls).toBe(1);
    const next = node.dispatcher.reserve('payments');
    expect(next).not.toBeNull();
    next!.release();
  });

  it('refuses fresh operations while older due work is waiting for the provider', async () => {
    const provider = world.provider('payments', 'c');
    const pause = world.pause();
    provider.otherwise = behave.paused(pause, behave.ok);
    const node = await world.node(limited(1));
    const ids = await world.planMany(node, 'payments', 12);
    await node.work();
    await pause.reached;
    expect(node.dispatcher.reserve('payments')).toBeNull();
    pause.release();
    await world.until('the call is over', () => provider.inFlight === 0);
    expect(node.dispatcher.reserve('payments')).toBeNull();
    node.start();
    await world.untilStatus(ids, 'succeeded');
    await world.until('the backlog is gone', async () => (await world.dueRows()).length === 0 && (await node.dispatcher.runOnce()) === 0);
    const slot = node.dispatcher.reserve('payments');
    expect(slot).not.toBeNull();
    slot!.release();
    expect(provider.inFlightMax).toBe(1);
  });
});

describe('a provider that takes one call at a time', () => {
  it('is kept busy, without looking at what has to wait again and again', async () => {
    const world = await createDispatcherWorld();
    try {
      const provider = world.provider('payments', 'c');
      let taken = 0;
      const node = await world.node({
        ...limited(1),
        wrapDueWork: (dueWork) => ({
          take: async (room, hideMs) => {
            const rows = await dueWork.take(room, hideMs);
            taken += rows.length;
            return rows;
          },
          takeOthers: (providers, rows, hideMs) => dueWork.takeOthers(providers, rows, hideMs),
          set: (changes) => dueWork.set(changes),
          countDue: () => dueWork.countDue(),
        }),
      });
      const ids = await world.planMany(node, 'payments', 20);
      node.start();
      await world.untilStatus(ids, 'succeeded');
      expect([provider.calls, provider.inFlightMax]).toEqual([20, 1]);
      // Each once, and a few that were looked at while it was busy.
      expect(taken).toBeLessThan(20 + 40);
    } finally {
      await world.close();
    }
  });
});

describe('stopping a dispatcher', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('finishes and records the calls under way, takes nothing new, and leaves no claim without a call', async () => {
    const provider = world.provider('payments', 'c');
    const pause = world.pause();
    provider.otherwise = behave.paused(pause, behave.ok);
    const node = (await world.node(limited(3))).start();
    const ids = await world.planMany(node, 'payments', 20);
    await world.until('three calls under way', () => provider.inFlight === 3);
    const stopped = node.dispatcher.stop();
    expect(node.dispatcher.reserve('payments')).toBeNull();
    pause.release();
    await stopped;
    const states = await Promise.all(ids.map((id) => world.state(id)));
    expect(states.filter(({ status }) => status === 'succeeded')).toHaveLength(3);
    expect(states.filter(({ status }) => status === 'planned')).toHaveLength(17);
    expect(provider.calls).toBe(3);
    expect(node.faults).toEqual([]);
  });

  it('waits for a slot that was lent before, until it is given back or its call is recorded', async () => {
    const provider = world.provider('payments', 'c');
    const node = await world.node();
    const [used, unused] = [node.dispatcher.reserve('payments')!, node.dispatcher.reserve('payments')!];
    let isStopped = false;
    const stopped = node.dispatcher.stop().then(() => (isStopped = true));
    const { operationId, claimed } = await world.planAndClaim(node, 'payments', used.worker);
    unused.release();
    expect(isStopped).toBe(false);
    used.run(claimed);
    await stopped;
    expect(await world.state(operationId)).toMatchObject({ status: 'succeeded' });
    expect(provider.calls).toBe(1);
  });

  it('gives rows back that it had only just taken', async () => {
    const provider = world.provider('payments', 'c');
    let stop = (): Promise<void> => Promise.resolve();
    const node = await world.node({
      wrapDueWork: (dueWork) => ({
        take: async (room, hideMs) => {
          const rows = await dueWork.take(room, hideMs);
          void stop();
          return rows;
        },
        takeOthers: (providers, rows, hideMs) => dueWork.takeOthers(providers, rows, hideMs),
        set: (changes) => dueWork.set(changes),
        countDue: () => dueWork.countDue(),
      }),
    });
    const ids = await world.planMany(node, 'payments', 5);
    stop = () => node.dispatcher.stop();
    await node.work(5);
    expect(provider.calls).toBe(0);
    for (const row of await world.dueRows()) expect(Number(row.due_at_ms) - node.clock.nowMs()).toBeLessThan(1_000);
    expect(new Set(await Promise.all(ids.map((id) => world.types(id).then((types) => types.join()))))).toEqual(
      new Set(['OperationPlanned']),
    );
    const other = await world.node();
    await other.work(5);
    await world.untilStatus(ids, 'succeeded');
  });

  it('may be asked for twice, and without ever having started', async () => {
    world.provider('payments', 'c');
    const node = await world.node();
    await Promise.all([node.dispatcher.stop(), node.dispatcher.stop()]);
    expect(node.dispatcher.reserve('payments')).toBeNull();
  });
});
