import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { streamOf } from '#domain';
import { behave } from '../../support/dispatcher-provider.js';
import { createDispatcherWorld, type DispatcherWorld } from '../../support/dispatcher-world.js';

describe('one operation that can’t be handled', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  const corrupt = (operationId: string, data: string) =>
    world.pool.query('update onefold.events set data = $2 where stream = $1 and revision = 0', [streamOf(operationId), data]);

  async function corruptPayload(operationId: string): Promise<void> {
    const { data } = (await world.events(operationId))[0]!.event as { data: { payload: string } };
    const payload = data.payload.slice(0, -4) + (data.payload.endsWith('AAAA') ? 'BBBB' : 'AAAA');
    await corrupt(operationId, JSON.stringify({ ...data, payload }));
  }

  it.each([
    ['an event that can’t be folded', (id: string) => corrupt(id, 'null')],
    ['an event that is no JSON', (id: string) => corrupt(id, '{')],
  ])('holds up no other: %s', async (_what, spoil) => {
    const provider = world.provider('payments', 'c');
    const node = await world.node();
    const broken = await world.plan(node, 'payments');
    const ids = await world.planMany(node, 'payments', 10);
    while ((await node.feed.runOnce()) > 0);
    await spoil(broken);
    // What is due by the clock of this process is due some milliseconds later by the database's: rounds until all of them were taken.
    for (let taken = 0; taken < 11;) taken += await node.dispatcher.runOnce();
    await world.untilStatus(ids, 'succeeded');
    expect(provider.calls).toBe(10);
    expect(node.faults).toMatchObject([{ what: 'handling due work', operationId: broken }]);
    // Its row is kept and comes back after a while.
    expect(await world.dueRows()).toContainEqual(expect.objectContaining({ operation_id: broken }));
    expect(await node.dispatcher.runOnce()).toBe(0);
  });

  it('ends as failed where its payload can’t be opened and nothing was sent', async () => {
    const provider = world.provider('payments', 'c');
    const node = await world.node();
    const broken = await world.plan(node, 'payments');
    const whole = await world.plan(node, 'payments');
    await corruptPayload(broken);
    await node.work(2);
    await world.untilStatus(whole, 'succeeded');
    expect(await world.state(broken)).toMatchObject({ status: 'failed_final', code: 'payload_unreadable' });
    expect(node.faults).toMatchObject([{ what: 'opening a payload', operationId: broken }]);
    expect(provider.ledger(broken).calls).toBe(0);
  });

  it('still asks, and in the end comes before a person, where its payload can’t be opened and a send is in doubt', async () => {
    const provider = world.provider('payments', 'c');
    provider.next(behave.lost);
    provider.onLookUp = () => ({ verdict: 'inconclusive', code: 'http_500', anomaly: null, providerOperationId: null, result: null });
    const node = await world.node();
    const id = await world.plan(node, 'payments');
    await node.work();
    await world.untilStatus(id, 'unknown');
    await corruptPayload(id);
    node.start();
    await world.untilEvent(id, 'ReviewRequested');
    expect(await world.state(id)).toMatchObject({ status: 'unknown', review: { reason: 'lookup_inconclusive' } });
    expect(provider.ledger(id).calls).toBe(1);
  });

  it('is not what a provider that was down is tried with', async () => {
    const provider = world.provider('payments', 'c');
    // The first request fails and opens the breaker.
    provider.next(behave.refuse);
    const node = await world.node({ definitions: { payments: { breaker: { failures: 1, windowMs: 50, halfOpen: 'lookup' } } } });
    const first = await world.plan(node, 'payments');
    await node.work();
    await world.untilStatus(first, 'failed_retryable');
    const broken = await world.plan(node, 'payments');
    const ids = await world.planMany(node, 'payments', 5);
    await corruptPayload(broken);
    node.start();
    await world.untilStatus([first, ...ids], 'succeeded');
    expect(provider.lookUps).toBe(1);
    // Once for itself; it is hidden for a while and is not asked for the state of the provider again.
    expect(node.faults).toMatchObject([{ operationId: broken }]);
  });
});

describe('a provider that was down', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('is tried with one look-up at a time before anything is sent', async () => {
    const provider = world.provider('payments', 'c');
    const pause = world.pause();
    provider.next(behave.refuse);
    provider.onLookUp = async () => {
      pause.reach();
      await pause.released;
      return { verdict: 'absent', code: null, anomaly: null, providerOperationId: null, result: null };
    };
    const node = await world.node({ definitions: { payments: { breaker: { failures: 1, windowMs: 50, halfOpen: 'lookup' } } } });
    const first = await world.plan(node, 'payments');
    await node.work();
    await world.untilStatus(first, 'failed_retryable');
    const ids = await world.planMany(node, 'payments', 10);
    node.start();
    await pause.reached;
    for (let round = 0; round < 5; round++) await node.dispatcher.runOnce();
    expect([provider.lookUps, provider.calls]).toEqual([1, 1]);
    pause.release();
    await world.untilStatus([first, ...ids], 'succeeded');
    expect(provider.calls).toBe(12);
  });
});

describe('a look-up under way', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('hides its operation for as long as it may take, so that no second one spends the look-ups left', async () => {
    const provider = world.provider('payments', 'c');
    provider.next(behave.acceptHang);
    const pause = world.pause();
    provider.onLookUp = async () => {
      pause.reach();
      await pause.released;
      return { verdict: 'present', code: null, anomaly: null, providerOperationId: 're_1', result: null };
    };
    const node = await world.node({ definitions: { payments: { timeoutMs: 30_000 } } });
    const id = await world.plan(node, 'payments');
    await node.work();
    await world.untilStatus(id, 'unknown');
    while (provider.lookUps === 0) await node.round();
    await pause.reached;
    const [row] = await world.dueRows();
    expect(Number(row!.due_at_ms) - node.clock.nowMs()).toBeGreaterThan(30_000);
    pause.release();
    await world.untilStatus(id, 'succeeded');
    while ((await node.feed.runOnce()) > 0);
    expect(await world.dueRows()).toEqual([]);
  });
});

describe('the clock of the process', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(async () => {
    vi.useRealTimers();
    await world.reset();
  });
  afterAll(() => world.close());

  it.each([30_000, -30_000, 86_400_000, -86_400_000])('changes nothing when it is wrong by %i ms (public case 22)', async (skewMs) => {
    const realNowMs = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: realNowMs + skewMs });
    const provider = world.provider('payments', 'c');
    const pause = world.pause();
    provider.next(behave.paused(pause, behave.ok));
    const [owner, other] = [await world.node(), await world.node()];
    const held = await world.plan(owner, 'payments');
    await owner.work();
    await pause.reached;
    const doubtful = await world.plan(owner, 'payments');
    provider.next(behave.acceptHang);
    const later = await world.plan(owner, 'payments');
    provider.nextFor(later, behave.tooMany(3_600_000));
    other.start();
    await world.untilStatus(doubtful, 'succeeded');
    await world.untilStatus(later, 'failed_retryable');
    expect(await world.state(held)).toMatchObject({ status: 'executing', history: { count: 1 } });
    pause.release();
    await world.untilStatus(held, 'succeeded');
    for (const id of [held, doubtful]) expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
    expect(provider.ledger(later)).toMatchObject({ calls: 1, effects: 0 });
    const times = (await world.events(doubtful)).map(({ metadata }) => Date.parse(metadata.at));
    for (const atMs of times) expect(Math.abs(atMs - realNowMs)).toBeLessThan(20_000);
  });
});
