import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { POLICIES } from '../../support/dispatcher-policies.js';
import { behave } from '../../support/dispatcher-provider.js';
import { createDispatcherWorld, type DispatcherWorld } from '../../support/dispatcher-world.js';

const DAY_MS = 86_400_000;

describe('a dispatcher', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('carries a planned operation out once and leaves no due work', async () => {
    const provider = world.provider('payments', 'c');
    const node = (await world.node()).start();
    const id = await world.plan(node, 'payments');
    await world.untilStatus(id, 'succeeded');
    await world.until('no due work', async () => (await world.dueRows()).length === 0);
    expect(await world.types(id)).toEqual(['OperationPlanned', 'AttemptStarted', 'OperationSucceeded']);
    expect(await world.state(id)).toMatchObject({ providerOperationId: `effect-${id}-1`, evidence: 'response' });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
    expect(provider.seen[0]).toMatchObject({
      operationId: id,
      attempt: 1,
      tenant: 't1',
      actionType: 'refund.create',
      payload: { order_id: '4417', amount_minor: 3800, currency: 'USD' },
      timeoutMs: 2_000,
    });
    expect(node.faults).toEqual([]);
  });

  it('never calls twice where five dispatchers race for 200 operations', async () => {
    const provider = world.provider('payments', 'f');
    const nodes = await Promise.all(Array.from({ length: 5 }, (_, n) => world.node({ worker: `w${n}` })));
    const ids = await world.planMany(nodes[0]!, 'payments', 200);
    // Each has the same due work at the same moment: all rows are handed to all of them, as after a redelivery.
    for (const node of nodes) while ((await node.feed.runOnce()) > 0);
    const rows = (await world.dueRows()).map(({ operation_id: operationId, provider: name }) => ({ operationId, provider: name }));
    expect(rows).toHaveLength(200);
    await Promise.all(
      nodes.map(async (node) => {
        Object.assign(node.dueWork, { take: async () => rows });
        // 200 operations and 50 slots: four rounds, and two in which everything is finished.
        for (let round = 0; round < 6; round++) await node.dispatcher.runOnce();
      }),
    );
    await world.untilStatus(ids, 'succeeded');
    expect(provider.calls).toBe(200);
    expect(new Set(ids.map((id) => provider.ledger(id).calls))).toEqual(new Set([1]));
    expect(provider.effects).toBe(200);
  });

  it('waits out a Retry-After by the time of the database', async () => {
    const provider = world.provider('payments', 'c');
    provider.next(behave.tooMany(60_000));
    const first = await world.node();
    const id = await world.plan(first, 'payments');
    await first.work();
    await world.untilStatus(id, 'failed_retryable');
    await first.close();

    await world.moveClock(55_000);
    const early = await world.node();
    await early.round();
    expect(await early.dispatcher.runOnce()).toBe(0);
    expect(provider.calls).toBe(1);
    await early.close();

    await world.moveClock(61_000);
    const late = await world.node();
    await late.work();
    await world.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 2, effects: 1, attempts: [1, 2] });
  });

  it('ends an operation whose attempts were all provably not consumed as failed', async () => {
    const provider = world.provider('payments', 'c');
    provider.otherwise = behave.refuse;
    const node = (await world.node()).start();
    const id = await world.plan(node, 'payments');
    await world.untilStatus(id, 'failed_final');
    expect(await world.state(id)).toMatchObject({ code: 'attempts_exhausted', evidence: 'budget' });
    expect(provider.ledger(id)).toMatchObject({ calls: 3, effects: 0 });
  });

  it('settles a lost answer by a look-up', async () => {
    const provider = world.provider('payments', 'c');
    provider.next(behave.acceptHang);
    const node = (await world.node()).start();
    const id = await world.plan(node, 'payments');
    await world.untilStatus(id, 'succeeded');
    expect(await world.types(id)).toEqual(['OperationPlanned', 'AttemptStarted', 'OutcomeUnknown', 'OutcomeChecked', 'OperationSucceeded']);
    expect(await world.state(id)).toMatchObject({ evidence: 'lookup', providerOperationId: `effect-${id}-1` });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('sends again only what a look-up has proven absent', async () => {
    const provider = world.provider('payments', 'c');
    provider.next(behave.lost);
    const node = (await world.node()).start();
    const id = await world.plan(node, 'payments');
    await world.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 2, effects: 1 });
    expect(provider.lookUps).toBe(1);
  });

  it('repeats under the same key where the provider honours it, and takes a rejected reference for the proof of the first send', async () => {
    const keyed = world.provider('keyed', 'a');
    const referenced = world.provider('referenced', 'e');
    keyed.next(behave.acceptHang);
    referenced.next(behave.acceptHang);
    const node = (await world.node()).start();
    const ids = [await world.plan(node, 'keyed'), await world.plan(node, 'referenced')] as const;
    await world.untilStatus(ids, 'succeeded');
    expect(keyed.ledger(ids[0])).toMatchObject({ calls: 2, effects: 1 });
    expect(new Set(keyed.seen.map(({ providerKey }) => providerKey)).size).toBe(1);
    expect(referenced.ledger(ids[1])).toMatchObject({ calls: 2, effects: 1 });
    expect(await world.state(ids[1])).toMatchObject({ evidence: 'already_done' });
  });

  it('leaves what nobody can find out to a person, and sends nothing again after restarts and a day', async () => {
    const provider = world.provider('mail', 'f');
    provider.next(behave.acceptHang);
    const node = (await world.node()).start();
    const id = await world.plan(node, 'mail');
    await world.untilEvent(id, 'ReviewRequested');
    const before = await world.types(id);
    await world.closeNodes();

    for (const offsetMs of [3_600_000, DAY_MS]) {
      await world.moveClock(offsetMs);
      const nodes = await Promise.all([world.node(), world.node()]);
      for (const each of nodes) expect(await each.round()).toBe(0);
      await world.closeNodes();
    }
    expect(await world.types(id)).toEqual(before);
    expect(await world.state(id)).toMatchObject({ status: 'unknown', review: { reason: 'no_lookup' } });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('asks about a claim whose process died, and calls no second time', async () => {
    const provider = world.provider('payments', 'c');
    const crashing = await world.node({ worker: 'w-crashing' });
    const { operationId: id, claimed } = await world.planAndClaim(crashing, 'payments', 'w-crashing');
    // The request left, and the process died with it.
    await provider.call({ ...claimed.operation.state.facts, attempt: 1, payload: null, timeoutMs: 1 });
    await crashing.kill();

    await world.moveClock(9_000);
    const early = await world.node();
    await early.round();
    expect(await world.state(id)).toMatchObject({ status: 'executing' });
    await early.close();

    await world.moveClock(11_000);
    (await world.node()).start();
    await world.untilStatus(id, 'succeeded');
    expect(await world.types(id)).toEqual(['OperationPlanned', 'AttemptStarted', 'OutcomeUnknown', 'OutcomeChecked', 'OperationSucceeded']);
    expect((await world.events(id))[2]!.event.data).toMatchObject({ code: 'lease_expired' });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('takes no step of the database’s clock for time in which a sent request would have landed', async () => {
    const landing_ms = 10_000;
    const provider = world.provider('payments', 'c', { lookup: { ...POLICIES.c.lookup, landing_ms, max_checks: 20 } });
    let land: () => void = () => undefined;
    provider.next((each, call) => ((land = () => void each.cause(call)), behave.lost()));
    const node = await world.node();
    const id = await world.plan(node, 'payments');
    await node.work();
    await world.untilStatus(id, 'unknown');
    const checks = async () =>
      (await world.events(id)).filter(({ event }) => event.type === 'OutcomeChecked').map(({ event }) => event.data);

    for (const [step, seconds] of [30, 60, 90].entries()) {
      await world.stepClock(seconds * 1_000);
      await node.work();
      await world.until('the look-up is recorded', async () => (await checks()).length > step);
    }
    expect(await checks()).toMatchObject(Array.from({ length: 3 }, () => ({ verdict: 'absent', proof: false })));
    expect(provider.calls).toBe(1);

    land();
    await world.stepClock(120_000);
    await node.work();
    await world.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('takes absence for proven once it has itself waited for the landing', async () => {
    const provider = world.provider('payments', 'c', { lookup: { ...POLICIES.c.lookup, landing_ms: 10_000, max_checks: 20 } });
    provider.next(behave.lost);
    const node = await world.node();
    const id = await world.plan(node, 'payments');
    await node.work();
    await world.untilStatus(id, 'unknown');
    await node.work();
    await world.untilEvent(id, 'OutcomeChecked');
    await world.moveClock(11_000);
    node.start();
    await world.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 2, effects: 1 });
  });

  it('brings a claim of a dead process that nobody can ask about before a person', async () => {
    const provider = world.provider('mail', 'f');
    const crashing = await world.node();
    const { operationId: id } = await world.planAndClaim(crashing, 'mail', 'w0');
    await crashing.kill();
    await world.moveClock(11_000);
    const node = await world.node();
    await node.work();
    expect(await world.state(id)).toMatchObject({ status: 'unknown', review: { reason: 'no_lookup' } });
    expect(provider.calls).toBe(0);
  });

  it('keeps the claim of a live process while its lease runs, whatever other dispatchers do', async () => {
    const provider = world.provider('payments', 'c');
    const pause = world.pause();
    provider.next(behave.paused(pause, behave.ok));
    const [owner, other] = [await world.node(), await world.node()];
    const id = await world.plan(owner, 'payments');
    await owner.work();
    await pause.reached;
    for (let round = 0; round < 3; round++) await other.round();
    pause.release();
    await world.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
    expect(provider.lookUps).toBe(0);
  });

  it('settles a call that throws by asking, since it may have been sent', async () => {
    const provider = world.provider('payments', 'c');
    provider.next((each, call) => (each.cause(call), behave.breakContract()));
    const node = (await world.node()).start();
    const id = await world.plan(node, 'payments');
    await world.untilStatus(id, 'succeeded');
    expect((await world.events(id))[2]!.event).toMatchObject({ type: 'OutcomeUnknown', data: { code: 'adapter_error' } });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
    expect(node.faults).toMatchObject([{ what: 'calling a provider', operationId: id }]);
  });

  it('sends nothing on a lease that is too short for an answer, and says so', async () => {
    const provider = world.provider('payments', 'f', { lease_ms: 600, max_attempts: 1 });
    const node = (await world.node()).start();
    const id = await world.plan(node, 'payments');
    await world.untilStatus(id, 'failed_final');
    expect((await world.events(id))[2]!.event).toMatchObject({ type: 'AttemptNotSent', data: { code: 'lease_too_short', reached: false } });
    expect(provider.calls).toBe(0);
  });

  it('never lets a call outlast its lease', async () => {
    const provider = world.provider('payments', 'c', { lease_ms: 1_500 });
    const node = (await world.node()).start();
    const id = await world.plan(node, 'payments');
    await world.untilStatus(id, 'succeeded');
    expect(provider.seen[0]!.timeoutMs).toBeLessThanOrEqual(1_000);
    expect(provider.seen[0]!.timeoutMs).toBeGreaterThanOrEqual(200);
  });

  it('keeps operations of a provider that is not in the catalogue, and concludes those whose lease has ended', async () => {
    const provider = world.provider('gone', 'c');
    const first = await world.node();
    const waiting = await world.plan(first, 'gone');
    const { operationId: claimed } = await world.planAndClaim(first, 'gone', 'w0');
    await first.kill();
    await world.moveClock(11_000);
    const node = await world.node({ without: ['gone'] });
    await node.work(2);
    expect(await world.state(waiting)).toMatchObject({ status: 'planned' });
    expect(await world.state(claimed)).toMatchObject({ status: 'unknown' });
    expect(provider.calls).toBe(0);
    expect(node.faults).toEqual([]);
    await node.close();

    await world.moveClock(11_000 + 61_000);
    (await world.node()).start();
    await world.untilStatus([waiting, claimed], 'succeeded');
    expect(provider.ledger(waiting)).toMatchObject({ calls: 1, effects: 1 });
  });
});
