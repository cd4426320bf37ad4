import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { oldestUnknownAgeMs } from '#adapters/view/oldest-unknown.js';
import { OperationProjection } from '#adapters/view/operation-projection.js';
import { KEYS } from '../apps/command-api/support/api.js';
import { POLICIES } from '../support/dispatcher-policies.js';
import { behave } from '../support/dispatcher-provider.js';
import { publicCase } from './registry.js';
import { CaseWorld, HOUR, MINUTE, SECOND } from './support/case-world.js';

let world: CaseWorld;
beforeAll(async () => {
  world = await CaseWorld.open();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const inconclusive = () => ({ verdict: 'inconclusive', code: 'http_500', anomaly: null, providerOperationId: null, result: null }) as const;

describe(publicCase('23'), () => {
  it('repeats at 181 s and 200 s are told "in progress"; after a restart at 210 s it is looked up, and not called again', async () => {
    const { dispatchers } = world;
    const provider = world.provider('c');
    const pause = dispatchers.pause();
    let land: () => void = () => undefined;
    provider.next((each, call) => ((land = () => void each.cause(call)), behave.paused(pause, behave.lost)(each, call)));
    const definitions = { payments: { timeoutMs: 250 * SECOND } };
    const first = await dispatchers.node({ definitions });
    const api = await world.api(first, 'c', { policy: { lease_ms: 300 * SECOND } });
    const id: string = (await api.submit()).body.operation_id;
    await first.work();
    await pause.reached;
    for (const second of [181, 200]) {
      await dispatchers.moveClock(second * SECOND);
      expect(await api.submit()).toMatchObject({ status: 202, body: { operation_id: id, guidance: { state: 'in_progress' } } });
    }
    await dispatchers.moveClock(210 * SECOND);
    await first.kill();
    const second = await dispatchers.node({ definitions });
    await second.round();
    await dispatchers.moveClock(240 * SECOND);
    land();
    await second.round();
    expect((await dispatchers.state(id)).status).toBe('executing');
    await dispatchers.moveClock(301 * SECOND);
    second.start();
    await dispatchers.untilStatus(id, 'succeeded');
    expect(await dispatchers.state(id)).toMatchObject({ evidence: 'lookup' });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe(publicCase('24'), () => {
  it('in review for three days, an execution timeout of 1 h, the worker restarted daily: nothing is recorded and nothing is sent', async () => {
    const { dispatchers } = world;
    const provider = world.provider('f');
    provider.next(behave.acceptHang);
    const first = await dispatchers.node();
    const id = await dispatchers.plan(first, 'payments', { lease_ms: HOUR });
    await first.work();
    await dispatchers.untilEvent(id, 'ReviewRequested');
    const before = await dispatchers.events(id);
    for (let day = 1; day <= 3; day++) {
      await dispatchers.closeNodes();
      await dispatchers.moveClock(day * 24 * HOUR);
      const restarted = await dispatchers.node({ worker: `w-day-${day}` });
      expect(await restarted.round()).toBe(0);
    }
    expect(await dispatchers.events(id)).toEqual(before);
    expect(await dispatchers.state(id)).toMatchObject({ status: 'unknown', review: { reason: 'no_lookup' } });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe(publicCase('31'), () => {
  it('the look-up down for 25 h: unknown all the while, and before a person; the same refund attaches', async () => {
    const { dispatchers } = world;
    const provider = world.provider('d');
    provider.next(behave.acceptHang);
    provider.onLookUp = inconclusive;
    const node = await dispatchers.node();
    const api = await world.api(node, 'd');
    const id: string = (await api.submit()).body.operation_id;
    await node.work();
    await dispatchers.untilStatus(id, 'unknown');
    for (const hour of [1, 2, 3, 4, 5, 10, 15, 20, 25]) {
      await dispatchers.moveClock(hour * HOUR);
      const scheduler = await dispatchers.node();
      await scheduler.round();
      // Waits for the look-up that the round has begun.
      await scheduler.close();
      expect((await dispatchers.state(id)).status).toBe('unknown');
    }
    expect(provider.lookUps).toBe(POLICIES.d.lookup.max_checks);
    expect(await dispatchers.state(id)).toMatchObject({ review: { reason: 'lookup_inconclusive' } });
    const again = await api.submit();
    expect(again.body).toMatchObject({ operation_id: id, status: 'unknown', guidance: { state: 'checking', new_operation: false } });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });

    // What an alarm is set on: the age since it was planned, which no look-up and no review starts anew.
    expect(await oldestUnknownAgeMs(dispatchers.pool)).toBe(0);
    await new OperationProjection(dispatchers.pool, node.log).handle(await node.log.readAll(0n, 1_000));
    const age = await oldestUnknownAgeMs(dispatchers.pool);
    expect(age).toBeGreaterThanOrEqual(25 * HOUR);
    expect(age).toBeLessThan(26 * HOUR);
  });
});

describe(publicCase('32'), () => {
  it('a visibility lag of 60 s: "not found" at 5 s proves nothing, "found" at 90 s settles it; one call', async () => {
    const { dispatchers } = world;
    const provider = world.provider('d');
    provider.next(behave.acceptHang);
    const node = await dispatchers.node();
    const lookup = { ...POLICIES.d.lookup, visibility_lag_ms: 60 * SECOND, first_check_ms: 5 * SECOND };
    const id = await dispatchers.plan(node, 'payments', { lookup });
    await node.work();
    await dispatchers.untilStatus(id, 'unknown');
    provider.onLookUp = () => ({ verdict: 'absent', code: null, anomaly: null, providerOperationId: null, result: null });
    await dispatchers.moveClock(6 * SECOND);
    await node.work();
    await dispatchers.untilEvent(id, 'OutcomeChecked');
    expect((await dispatchers.events(id)).at(-1)!.event).toMatchObject({ data: { verdict: 'absent', proof: false } });
    expect(await dispatchers.state(id)).toMatchObject({ status: 'unknown', review: null });
    provider.onLookUp = null;
    await dispatchers.moveClock(90 * SECOND);
    node.start();
    await dispatchers.untilStatus(id, 'succeeded');
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe(publicCase('34'), () => {
  /** The first attempt at 0 min, a pause, and a process that goes on at 61 min. */
  async function pausedFor61Minutes(first: typeof behave.acceptHang | ReturnType<typeof behave.tooMany>) {
    const { dispatchers } = world;
    const provider = world.provider('b');
    provider.next(first);
    const node = await dispatchers.node();
    // The first look-up comes after the pause, as in a process that was stopped right after its first send.
    const policy = { lookup: { ...POLICIES.b.lookup, first_check_ms: 61 * MINUTE } };
    const api = await world.api(node, 'b', { policy });
    const id: string = (await api.submit()).body.operation_id;
    await node.work();
    await dispatchers.until('the first attempt is recorded', async () => (await dispatchers.types(id)).length === 3);
    const [, started] = await dispatchers.events(id);
    const { body } = await api.call('GET', `/v1/operations/${id}`, { key: KEYS.auditor });
    await dispatchers.closeNodes();
    await dispatchers.moveClock(61 * MINUTE);
    return { id, provider, shown: body.safe_retry_until, startedAtMs: Date.parse(started!.metadata.at) };
  }

  it('a 429 at first: found out about, and sent again only because it is absent', async () => {
    const { id, provider } = await pausedFor61Minutes(behave.tooMany(null));
    const node = (await world.dispatchers.node()).start();
    await world.dispatchers.untilEvent(id, 'OutcomeUnknown');
    expect((await world.dispatchers.events(id))[3]!.event).toMatchObject({ data: { code: 'key_retention_passed' } });
    await world.dispatchers.moveClock(61 * MINUTE + 62 * MINUTE);
    await world.dispatchers.untilStatus(id, 'succeeded');
    expect(node.faults).toEqual([]);
    expect(provider.lookUps).toBeGreaterThan(0);
    expect(provider.ledger(id)).toMatchObject({ calls: 2, effects: 1 });
    expect((await world.dispatchers.types(id)).slice(3)).toEqual([
      'OutcomeUnknown',
      'OutcomeChecked',
      'AttemptStarted',
      'OperationSucceeded',
    ]);
  });

  it('an ambiguous send at first: a person, and no second send', async () => {
    const { id, provider } = await pausedFor61Minutes(behave.acceptHang);
    provider.onLookUp = inconclusive;
    (await world.dispatchers.node()).start();
    await world.dispatchers.untilEvent(id, 'ReviewRequested');
    expect(await world.dispatchers.state(id)).toMatchObject({ status: 'unknown', review: { reason: 'key_retention_passed' } });
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('shows until when a repetition is safe: the first send, plus an hour, less the margin of a minute', async () => {
    const { shown, startedAtMs } = await pausedFor61Minutes(behave.acceptHang);
    expect(Date.parse(shown)).toBe(startedAtMs + HOUR - MINUTE);
  });
});
