import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { OperationEvent } from '#domain';
import { FaultyLog } from '../../support/dispatcher-faulty-log.js';
import { behave, type Behaviour, type ProviderClass } from '../../support/dispatcher-provider.js';
import type { DispatcherNode } from '../../support/dispatcher-node.js';
import { createDispatcherWorld, type DispatcherWorld } from '../../support/dispatcher-world.js';

describe('recording an outcome', () => {
  let world: DispatcherWorld;
  let faulty: FaultyLog;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  const nodeWithFaultyLog = (): Promise<DispatcherNode> => world.node({ wrapLog: (log) => (faulty = new FaultyLog(log)) });

  it('goes on while the log is away, and calls no second time', async () => {
    const provider = world.provider('payments', 'f');
    const node = await nodeWithFaultyLog();
    faulty.away(3, 'OperationSucceeded');
    const id = await world.plan(node, 'payments');
    await node.work();
    await world.untilStatus(id, 'succeeded');
    expect(await world.types(id)).toEqual(['OperationPlanned', 'AttemptStarted', 'OperationSucceeded']);
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
    expect(node.faults).toEqual([]);
  });

  const cases: [
    what: string,
    providerClass: ProviderClass,
    first: Behaviour,
    stored: OperationEvent['type'],
    then: OperationEvent['type'][],
  ][] = [
    ['a success', 'c', behave.ok, 'OperationSucceeded', []],
    ['a refusal', 'c', behave.decline, 'OperationFailed', []],
    ['a request that was not sent', 'c', behave.tooMany(60_000), 'AttemptNotSent', []],
    ['a doubt', 'f', behave.acceptHang, 'OutcomeUnknown', ['ReviewRequested']],
    ['a reference that was taken before', 'e', () => ({ kind: 'already_done' }), 'OutcomeUnknown', ['ReviewRequested']],
  ];
  it.each(cases)('records %s once where it was stored and the answer was lost', async (_what, providerClass, first, stored, then) => {
    const provider = world.provider('payments', providerClass);
    provider.next(first);
    const node = await nodeWithFaultyLog();
    faulty.answerLost([stored]);
    const id = await world.plan(node, 'payments');
    await node.work();
    await node.dispatcher.stop();
    expect(await world.types(id)).toEqual(['OperationPlanned', 'AttemptStarted', stored, ...then]);
    expect(provider.ledger(id).calls).toBe(1);
    expect(node.faults).toEqual([]);
  });

  it('records a refusal after a doubt once where it was stored and the answer was lost', async () => {
    const provider = world.provider('payments', 'e');
    provider.next(behave.lost, behave.decline);
    const node = await nodeWithFaultyLog();
    const id = await world.plan(node, 'payments', { max_attempts: 2 });
    await node.work();
    await world.untilStatus(id, 'unknown');
    faulty.answerLost(['OutcomeUnknown']);
    while (provider.calls < 2) await node.round();
    await node.dispatcher.stop();
    expect((await world.types(id)).slice(3)).toEqual(['AttemptStarted', 'OutcomeUnknown', 'ReviewRequested']);
    expect(provider.ledger(id).calls).toBe(2);
  });

  it('adds nothing to a stored outcome that the next attempt has already built on', async () => {
    const provider = world.provider('payments', 'c');
    const pause = world.pause();
    provider.next(behave.refuse, behave.paused(pause, behave.ok));
    const node = await nodeWithFaultyLog();
    const other = await world.node();
    const id = await world.plan(node, 'payments');
    faulty.answerLost(['AttemptNotSent'], async () => {
      other.start();
      await pause.reached;
    });
    await node.work();
    await node.dispatcher.stop();
    pause.release();
    await world.untilStatus(id, 'succeeded');
    expect(await world.types(id)).toEqual(['OperationPlanned', 'AttemptStarted', 'AttemptNotSent', 'AttemptStarted', 'OperationSucceeded']);
    expect(provider.ledger(id)).toMatchObject({ calls: 2, effects: 1 });
  });

  it('sends nothing where the answer to its own claim was lost', async () => {
    const provider = world.provider('payments', 'c', { lease_ms: 1_000 });
    const node = await nodeWithFaultyLog();
    faulty.answerLost(['AttemptStarted']);
    const id = await world.plan(node, 'payments');
    await node.work();
    await node.dispatcher.stop();
    expect(await world.types(id)).toEqual(['OperationPlanned', 'AttemptStarted']);
    expect(provider.calls).toBe(0);
    expect(node.faults).toMatchObject([{ what: 'handling due work', operationId: id }]);

    (await world.node()).start();
    await world.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1, attempts: [2] });
  });

  it('takes no newer attempt for its own where its claim is confirmed after the lease', async () => {
    const provider = world.provider('payments', 'c', { lease_ms: 1_000 });
    const pause = world.pause();
    provider.next(behave.paused(pause, behave.ok));
    const node = await nodeWithFaultyLog();
    const other = await world.node();
    const id = await world.plan(node, 'payments');
    faulty.answerLate(['AttemptStarted'], async () => {
      other.start();
      await pause.reached;
    });
    await node.work();
    await node.dispatcher.stop();
    pause.release();
    await world.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1, attempts: [2] });
  });
});

describe('a call that outlives its lease', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('is asked about by another process, which does not call; its late success then adds nothing (public case 20)', async () => {
    const provider = world.provider('payments', 'c', { lease_ms: 1_000 });
    const pause = world.pause();
    provider.next((each, call) => {
      const answer = each.cause(call);
      return behave.paused(pause, () => answer)(each, call);
    });
    const [stuck, other] = [await world.node(), await world.node()];
    const id = await world.plan(stuck, 'payments');
    await stuck.work();
    await pause.reached;
    other.start();
    await world.untilStatus(id, 'succeeded');
    pause.release();
    await stuck.dispatcher.stop();
    expect(await world.types(id)).toEqual(['OperationPlanned', 'AttemptStarted', 'OutcomeUnknown', 'OutcomeChecked', 'OperationSucceeded']);
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('never touches a newer attempt, also under the same worker name (public case 21)', async () => {
    const provider = world.provider('payments', 'c', { lease_ms: 1_000 });
    const [first, second] = [world.pause(), world.pause()];
    provider.next(behave.paused(first, behave.lost), behave.paused(second, behave.ok));
    const [stuck, other] = [await world.node({ worker: 'w0' }), await world.node({ worker: 'w0' })];
    const id = await world.plan(stuck, 'payments');
    await stuck.work();
    await first.reached;
    other.start();
    await second.reached;
    const before = await world.state(id);
    first.release();
    await stuck.dispatcher.stop();
    const after = await world.state(id);
    expect((await world.events(id)).at(-1)!.event).toMatchObject({
      type: 'EvidenceRecorded',
      data: { attempt: 1, verdict: 'unknown', contradicts: false },
    });
    expect(after).toMatchObject({ status: 'executing', history: { count: 2 } });
    expect(after).toMatchObject({ leaseUntilMs: (before as { leaseUntilMs: number }).leaseUntilMs });
    second.release();
    await world.untilStatus(id, 'succeeded');
    expect(await world.state(id)).toMatchObject({ evidence: 'response', providerOperationId: `effect-${id}-1` });
    expect(provider.ledger(id)).toMatchObject({ calls: 2, effects: 1 });
  });

  it('settles the doubt with its late success where nobody could ask (law 5)', async () => {
    const provider = world.provider('mail', 'f', { lease_ms: 1_000 });
    const pause = world.pause();
    provider.next(behave.paused(pause, behave.ok));
    const [stuck, other] = [await world.node(), await world.node()];
    const id = await world.plan(stuck, 'mail');
    await stuck.work();
    await pause.reached;
    other.start();
    await world.untilEvent(id, 'ReviewRequested');
    pause.release();
    await world.untilStatus(id, 'succeeded');
    expect(await world.state(id)).toMatchObject({ evidence: 'late_response', review: null });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe('an operation whose data key was destroyed', () => {
  let world: DispatcherWorld;
  beforeAll(async () => {
    world = await createDispatcherWorld();
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('fails for good without a call where nothing was ever sent', async () => {
    const provider = world.provider('payments', 'c');
    const node = await world.node();
    const id = await world.plan(node, 'payments');
    expect(await node.dataKeys.destroy(id)).toBe(1);
    node.start();
    await world.untilStatus(id, 'failed_final');
    expect(await world.state(id)).toMatchObject({ code: 'payload_erased' });
    expect(provider.calls).toBe(0);
  });

  it('is still looked up, and keeps no result', async () => {
    const provider = world.provider('payments', 'c');
    const node = await world.node();
    provider.next(async (each, call) => {
      each.cause(call);
      await node.dataKeys.destroy(call.operationId);
      return behave.lost();
    });
    const id = await world.plan(node, 'payments');
    node.start();
    await world.untilStatus(id, 'succeeded');
    expect(await world.state(id)).toMatchObject({ evidence: 'lookup', providerOperationId: `effect-${id}-1`, result: null });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it.each(['a', 'b', 'e'] as const)('is never called failed while an earlier send is in doubt (class %s)', async (providerClass) => {
    const provider = world.provider('payments', providerClass);
    // Class b looks up first; a look-up that can't tell leads on to the repetition.
    if (providerClass === 'b')
      provider.onLookUp = () => ({ verdict: 'inconclusive', code: 'http_500', anomaly: null, providerOperationId: null, result: null });
    const node = await world.node();
    provider.next(async (each, call) => {
      each.cause(call);
      await node.dataKeys.destroy(call.operationId);
      return behave.lost();
    });
    const id = await world.plan(node, 'payments');
    node.start();
    const settled = async () => {
      const { status, review } = await world.state(id);
      return review !== null || status === 'succeeded' || status === 'failed_final';
    };
    await world.until('an end or a review', settled);
    expect(await world.state(id)).toMatchObject(
      providerClass === 'a' ? { status: 'succeeded', evidence: 'lookup' } : { status: 'unknown', review: {} },
    );
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});
