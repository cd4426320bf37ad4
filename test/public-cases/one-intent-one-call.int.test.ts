import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { LogUnavailable, type EventLog } from '#domain';
import { I1, P1, SUBMISSION, type TestApi } from '../apps/command-api/support/api.js';
import { FaultyLog } from '../support/dispatcher-faulty-log.js';
import { POLICIES } from '../support/dispatcher-policies.js';
import { behave } from '../support/dispatcher-provider.js';
import { publicCase } from './registry.js';
import { CaseWorld, HOUR } from './support/case-world.js';

let world: CaseWorld;
beforeAll(async () => {
  world = await CaseWorld.open();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const withKey = (key: string) => ({ headers: { 'idempotency-key': key } });
const replayed = { 'idempotent-replayed': 'true' };

describe(publicCase('1'), () => {
  it('the second key is an alias: one stream, one call, and the answer names the first operation as being checked', async () => {
    const provider = world.provider('f');
    provider.next(behave.acceptHang);
    const node = (await world.dispatchers.node()).start();
    const api = await world.api(node, 'f');
    const first = await api.submit(SUBMISSION, withKey('aaaa'));
    await world.dispatchers.untilEvent(first.body.operation_id, 'ReviewRequested');
    const second = await api.submit(SUBMISSION, withKey('bbbb'));
    expect(second).toMatchObject({ status: 200, headers: replayed });
    expect(second.body).toMatchObject({ operation_id: first.body.operation_id, status: 'unknown', guidance: { state: 'checking' } });
    expect(await world.streams()).toBe(1);
    expect(provider.ledger(first.body.operation_id)).toMatchObject({ calls: 1, effects: 1 });
    expect(await world.dispatchers.types(first.body.operation_id)).toEqual([
      'OperationPlanned',
      'AttemptStarted',
      'OutcomeUnknown',
      'ReviewRequested',
    ]);
  });

  it('the same while a look-up is still to come', async () => {
    const provider = world.provider('c');
    provider.next(behave.acceptHang);
    const node = (await world.dispatchers.node()).start();
    const lookup = { ...POLICIES.c.lookup, first_check_ms: HOUR };
    const api = await world.api(node, 'c', { policy: { lookup } });
    const first = await api.submit(SUBMISSION, withKey('aaaa'));
    await world.dispatchers.untilStatus(first.body.operation_id, 'unknown');
    const second = await api.submit(SUBMISSION, withKey('bbbb'));
    expect(second.body).toMatchObject({ operation_id: first.body.operation_id, guidance: { state: 'unconfirmed', new_operation: false } });
    expect(provider.ledger(first.body.operation_id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe(publicCase('3'), () => {
  it('refuses the changed amount and leaves the outcome alone; a new revision is a new operation', async () => {
    const provider = world.provider('c');
    const node = (await world.dispatchers.node()).start();
    const api = await world.api(node, 'c');
    const first = await api.submit();
    const id = first.body.operation_id;
    await world.dispatchers.untilStatus(id, 'succeeded');
    const before = await world.dispatchers.events(id);

    const changed = { ...SUBMISSION, payload: { ...P1, amount_minor: 3900 } };
    const other = await api.submit(changed);
    expect(other).toMatchObject({ status: 422, body: { code: 'payload_mismatch', operation_id: id, operation_status: 'succeeded' } });
    expect(await world.dispatchers.events(id)).toEqual(before);
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });

    const next = await api.submit({ ...changed, identity: { ...I1, revision: 2 } });
    expect(next.status).toBe(202);
    expect(next.body.operation_id).not.toBe(id);
    await world.dispatchers.untilStatus(next.body.operation_id, 'succeeded');
    expect(provider).toMatchObject({ calls: 2, effects: 2 });
  });
});

describe(publicCase('5'), () => {
  it('is the same payload after its trip through PostgreSQL, and the provider is sent the number once', async () => {
    const provider = world.provider('c');
    const node = (await world.dispatchers.node()).start();
    const api = await world.api(node, 'c');
    const post = (qty: string, to: TestApi) =>
      to.call('POST', '/v1/operations', {
        raw: `{"action_type":"note.write","identity":{"workflow_id":"case-1842"},"payload":{"qty":${qty},"zero":-0}}`,
      });
    const { body } = await post('1.0', api);
    await world.dispatchers.untilStatus(body.operation_id, 'succeeded');
    const later = await world.api(await world.dispatchers.node(), 'c');
    for (const qty of ['1', '1e0']) expect(await post(qty, later)).toMatchObject({ status: 200, headers: replayed });
    expect(provider.seen.map(({ payload }) => JSON.stringify(payload))).toEqual(['{"qty":1,"zero":0}']);
  });
});

describe(publicCase('11'), () => {
  it('(d) after our own secret was rotated between two attempts it is a replay, and the provider sees the stored key', async () => {
    const [v1, v2] = ['v1', 'v2'].map((version) => ({ version, secret: `identity-secret-${version}` }));
    const provider = world.provider('a');
    provider.next(behave.tooMany(0));
    const node = await world.dispatchers.node();
    const first = await (await world.api(node, 'a', { identitySecrets: [v1!] })).submit();
    const id = first.body.operation_id;
    await node.work();
    await world.dispatchers.untilStatus(id, 'failed_retryable');

    const rotated = await world.api((await world.dispatchers.node()).start(), 'a', { identitySecrets: [v2!, v1!] });
    const again = await rotated.submit();
    expect(again).toMatchObject({ headers: replayed, body: { operation_id: id } });
    await world.dispatchers.untilStatus(id, 'succeeded');
    expect(provider.seen.map(({ providerKey }) => providerKey)).toEqual(Array(2).fill(await world.storedKey(id)));
    expect(provider.ledger(id)).toMatchObject({ calls: 2, effects: 1 });
    expect(await world.streams()).toBe(1);
  });
});

describe(publicCase('16'), () => {
  /** The log of a process with one part of it replaced. */
  const instead = (log: EventLog, part: Partial<EventLog>): EventLog => Object.assign(Object.create(log) as EventLog, part);
  const secrets = ['v2', 'v1'].map((version) => ({ version, secret: version }));

  it.each(['append', 'readStreams'] as const)('answers 503 where the log’s %s is away, and dispatches nothing', async (part) => {
    const provider = world.provider('c');
    const node = (await world.dispatchers.node()).start();
    const away = () => Promise.reject(new LogUnavailable('connection lost'));
    const api = await world.api(node, 'c', { log: instead(node.log, { [part]: away }), identitySecrets: secrets });
    expect(await api.submit()).toMatchObject({ status: 503, body: { code: 'log_unavailable' } });
    expect(await world.streams()).toBe(0);
    expect(provider.calls).toBe(0);
  });

  it('answers 503 where making the identity throws, and dispatches nothing', async () => {
    const provider = world.provider('c');
    const node = (await world.dispatchers.node()).start();
    const broken = () => {
      throw new TypeError('not a UUID');
    };
    const api = await world.api(node, 'c', { hashing: { ...nodeHashing, uuid5: broken } });
    expect(await api.submit()).toMatchObject({ status: 503, body: { code: 'identity_unavailable' } });
    expect(await world.streams()).toBe(0);
    expect(provider.calls).toBe(0);
  });

  it('runs nothing twice where reads come from a replica that lags behind: the append decides', async () => {
    const provider = world.provider('f');
    const node = (await world.dispatchers.node()).start();
    const first = await (await world.api(node, 'f')).submit();
    await world.dispatchers.untilStatus(first.body.operation_id, 'succeeded');
    const empty = { readStream: async () => [], readStreams: async (streams: readonly string[]) => new Map(streams.map((s) => [s, []])) };
    const api = await world.api(node, 'f', { log: instead(node.log, empty) });
    expect((await api.submit()).status).toBe(503);
    expect(await world.streams()).toBe(1);
    expect(provider.ledger(first.body.operation_id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe(publicCase('39'), () => {
  it('(a) an append that finds its event ids taken by another payload is refused after reading back', async () => {
    const provider = world.provider('f');
    const node = (await world.dispatchers.node()).start();
    const api = await world.api(node, 'f', { newId: () => 'the-same-command' });
    const first = await api.submit();
    await world.dispatchers.untilStatus(first.body.operation_id, 'succeeded');
    const before = await world.dispatchers.events(first.body.operation_id);
    const other = await api.submit({ ...SUBMISSION, payload: { ...P1, amount_minor: 3900 } });
    expect(other).toMatchObject({ status: 422, body: { code: 'payload_mismatch', operation_id: first.body.operation_id } });
    expect(await world.dispatchers.events(first.body.operation_id)).toEqual(before);
    expect(provider.ledger(first.body.operation_id)).toMatchObject({ calls: 1, effects: 1 });
  });

  it('(b) an append that was stored and whose answer was lost: 503, and the repetition attaches', async () => {
    const provider = world.provider('f');
    const node = (await world.dispatchers.node()).start();
    const faulty = new FaultyLog(node.log);
    const api = await world.api(node, 'f', { log: faulty });
    faulty.answerLost(['OperationPlanned']);
    expect((await api.submit()).status).toBe(503);
    const again = await api.submit();
    expect(again.headers).toMatchObject(replayed);
    await world.dispatchers.untilStatus(again.body.operation_id, 'succeeded');
    expect(await world.dispatchers.types(again.body.operation_id)).toEqual(['OperationPlanned', 'AttemptStarted', 'OperationSucceeded']);
    expect(provider.ledger(again.body.operation_id)).toMatchObject({ calls: 1, effects: 1 });
  });
});
