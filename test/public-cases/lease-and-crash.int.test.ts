import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { KEYS, SUBMISSION } from '../apps/command-api/support/api.js';
import { openSocket } from '../apps/command-api/support/raw-request.js';
import { behave } from '../support/dispatcher-provider.js';
import { publicCase } from './registry.js';
import { CaseWorld, SECOND } from './support/case-world.js';
import { DyingLog } from './support/dying-log.js';

let world: CaseWorld;
beforeAll(async () => {
  world = await CaseWorld.open();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const FOUND = ['OperationPlanned', 'AttemptStarted', 'OutcomeUnknown', 'OutcomeChecked', 'OperationSucceeded'];

/** A worker that has claimed I1, whose call hangs at the provider after its effect, and that then dies. */
async function killedAfterSending(providerClass: 'c' | 'f') {
  const { dispatchers } = world;
  const provider = world.provider(providerClass);
  const pause = dispatchers.pause();
  provider.next((each, call) => (each.cause(call), behave.paused(pause, behave.lost)(each, call)));
  const dying = await dispatchers.node({ worker: 'w-dying' });
  const api = await world.api(dying, providerClass, { policy: { lease_ms: 5 * SECOND } });
  const id: string = (await api.submit()).body.operation_id;
  await dying.work();
  await pause.reached;
  await dying.kill();
  return { provider, id };
}

describe(publicCase('17'), () => {
  it('redelivered after 6 s of a lease of 5 s, the operation is looked up and found; one call', async () => {
    const { provider, id } = await killedAfterSending('c');
    await world.dispatchers.moveClock(4 * SECOND);
    const early = await world.dispatchers.node();
    await early.round();
    expect((await world.dispatchers.state(id)).status).toBe('executing');
    await early.close();
    await world.dispatchers.moveClock(6 * SECOND);
    (await world.dispatchers.node()).start();
    await world.dispatchers.untilStatus(id, 'succeeded');
    expect(await world.dispatchers.types(id)).toEqual(FOUND);
    expect(await world.dispatchers.state(id)).toMatchObject({ evidence: 'lookup' });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('without a look-up it is unknown, and a person is asked', async () => {
    const { provider, id } = await killedAfterSending('f');
    await world.dispatchers.moveClock(6 * SECOND);
    (await world.dispatchers.node()).start();
    await world.dispatchers.untilEvent(id, 'ReviewRequested');
    expect(await world.dispatchers.state(id)).toMatchObject({ status: 'unknown', review: { reason: 'no_lookup' } });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe(publicCase('18'), () => {
  it('(a) killed after the claim and before a byte was sent: proven absent, then carried out', async () => {
    const provider = world.provider('c');
    const dying = await world.dispatchers.node();
    const { operationId: id } = await world.dispatchers.planAndClaim(dying, 'payments', 'w-dying');
    await dying.kill();
    await world.dispatchers.moveClock(11 * SECOND);
    const node = await world.dispatchers.node();
    await node.work();
    await world.dispatchers.untilStatus(id, 'unknown');
    await node.work();
    await world.dispatchers.untilEvent(id, 'OutcomeChecked');
    expect(provider.calls).toBe(0);
    // A lease said to be over may last by another clock: this process has to have known the doubt for as long.
    await world.dispatchers.moveClock(30 * SECOND);
    node.start();
    await world.dispatchers.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1, attempts: [2] });
  });

  it('(b) the client hangs up while the server still works: recorded and carried out, and a repetition gets its id', async () => {
    const provider = world.provider('c');
    const pause = world.dispatchers.pause();
    provider.next(behave.paused(pause, behave.ok));
    const node = (await world.dispatchers.node()).start();
    const api = await world.api(node, 'c');
    const socket = await openSocket(api.app);
    const body = JSON.stringify(SUBMISSION);
    const head = ['POST /v1/operations HTTP/1.1', 'host: x', `authorization: Bearer ${KEYS.agent}`, 'prefer: wait=5'];
    socket.write([...head, 'content-type: application/json', `content-length: ${body.length}`, '', body].join('\r\n'));
    await pause.reached;
    socket.destroy();
    await once(socket, 'close');
    const again = await api.submit();
    expect(again).toMatchObject({ status: 202, body: { status: 'executing', guidance: { state: 'in_progress' } } });
    pause.release();
    await world.dispatchers.untilStatus(again.body.operation_id, 'succeeded');
    expect(provider.ledger(again.body.operation_id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('(c) killed between the provider’s answer and the record of it: found by the look-up', async () => {
    const provider = world.provider('c');
    const dying = await world.dispatchers.node({ wrapLog: (log) => new DyingLog(log, 'before', 'OperationSucceeded') });
    const id: string = (await (await world.api(dying, 'c')).submit()).body.operation_id;
    await dying.work();
    await world.dispatchers.until('the worker is dead', () => dying.faults.length > 0);
    await dying.kill();
    expect(await world.dispatchers.types(id)).toEqual(['OperationPlanned', 'AttemptStarted']);
    await world.dispatchers.moveClock(11 * SECOND);
    const node = (await world.dispatchers.node()).start();
    await world.dispatchers.untilStatus(id, 'succeeded');
    expect(await (await world.api(node, 'c')).submit()).toMatchObject({ status: 200, body: { operation_id: id, status: 'succeeded' } });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe(publicCase('20'), () => {
  it('B does not call but asks; the late 200 of A agrees and adds no second success', async () => {
    const provider = world.provider('c');
    const pause = world.dispatchers.pause();
    provider.next((each, call) => {
      const answer = each.cause(call);
      return behave.paused(pause, () => answer)(each, call);
    });
    const [a, b] = [await world.dispatchers.node({ worker: 'A' }), await world.dispatchers.node({ worker: 'B' })];
    const id = await world.dispatchers.plan(a, 'payments', { lease_ms: 2 * SECOND });
    await a.work();
    await pause.reached;
    await world.dispatchers.moveClock(5 * SECOND);
    b.start();
    await world.dispatchers.untilStatus(id, 'succeeded');
    pause.release();
    await a.dispatcher.stop();
    expect((await world.dispatchers.types(id)).filter((type) => type === 'OperationSucceeded')).toHaveLength(1);
    expect(await world.dispatchers.state(id)).toMatchObject({ status: 'succeeded', review: null });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1, attempts: [1] });
  });
});

describe(publicCase('21'), () => {
  it('attempt 1 of w0 wakes with a time-out beside attempt 2 of w0: late evidence, and nothing else moves', async () => {
    const provider = world.provider('c');
    const [first, second] = [world.dispatchers.pause(), world.dispatchers.pause()];
    provider.next(behave.paused(first, behave.lost), behave.paused(second, behave.ok));
    const [stuck, other] = [await world.dispatchers.node({ worker: 'w0' }), await world.dispatchers.node({ worker: 'w0' })];
    const id = await world.dispatchers.plan(stuck, 'payments', { lease_ms: SECOND });
    await stuck.work();
    await first.reached;
    other.start();
    await second.reached;
    const before = await world.dispatchers.state(id);
    first.release();
    await stuck.dispatcher.stop();
    expect((await world.dispatchers.events(id)).at(-1)!.event).toMatchObject({
      type: 'EvidenceRecorded',
      data: { attempt: 1, verdict: 'unknown', contradicts: false },
    });
    const { status, history, ...lease } = (await world.dispatchers.state(id)) as never as Record<string, unknown>;
    expect({ status, history }).toMatchObject({ status: 'executing', history: { count: 2 } });
    expect(lease['leaseUntilMs']).toBe((before as { leaseUntilMs: number }).leaseUntilMs);
    second.release();
    await world.dispatchers.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 2, effects: 1 });
  });
});

describe(publicCase('22'), () => {
  it.each([30, -30])('a worker whose own clock is off by %i s never takes a live lease of 20 s', async (skewSeconds) => {
    const provider = world.provider('c');
    const pause = world.dispatchers.pause();
    provider.next(behave.paused(pause, behave.ok));
    const [a, b] = [await world.dispatchers.node({ worker: 'A' }), await world.dispatchers.node({ worker: 'B' })];
    const id = await world.dispatchers.plan(a, 'payments', { lease_ms: 20 * SECOND });
    await a.work();
    await pause.reached;
    const { leaseUntilMs } = (await world.dispatchers.state(id)) as { leaseUntilMs: number };
    const realNow = Date.now;
    Date.now = () => realNow() + skewSeconds * SECOND;
    try {
      for (let round = 0; round < 3; round++) await b.round();
      // The row asks for the operation although its lease lives: the stream and the database's time decide.
      await world.dispatchers.pool.query('update onefold.due_work set due_at_ms = 0');
      expect(await b.round()).toBe(1);
    } finally {
      Date.now = realNow;
    }
    expect(await world.dispatchers.types(id)).toEqual(['OperationPlanned', 'AttemptStarted']);
    expect(Math.abs(leaseUntilMs - 20 * SECOND - a.clock.nowMs())).toBeLessThan(20 * SECOND);
    pause.release();
    await world.dispatchers.untilStatus(id, 'succeeded');
    expect(provider).toMatchObject({ calls: 1, effects: 1, lookUps: 0 });
  });
});
