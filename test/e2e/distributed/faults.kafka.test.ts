import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATION_EVENTS_TOPIC } from '#adapters/broker/kafka/topics.js';
import { LEASE_EXPIRED, streamOf } from '#domain';
import { startStack } from '../../../stack/stack.js';
import { noOwnCluster } from '../../support/kafka.js';
import { metricsOf, pause, StackUser, valueOf } from './support.js';

const AGE = 'onefold_relay_oldest_unpublished_seconds';

describe.skipIf(await noOwnCluster())('the whole stack on one broker', () => {
  let user: StackUser;

  beforeAll(async () => {
    user = new StackUser(await startStack({ instances: { 'command-api': 1, relay: 1, dispatcher: 2, projector: 1 } }));
  }, 180_000);
  afterAll(() => user?.stack.stop(), 180_000);

  it('goes on accepting while the broker is away for 60 s, and loses nothing (public case 37)', async () => {
    const [relay] = user.services('relay');
    const age = async () => valueOf(await metricsOf(relay!.url), AGE);
    const [broker] = user.stack.kafka.nodes;
    await user.untilSucceeded(await user.planMany('before', 20));
    await broker!.kill();
    const awayUntil = performance.now() + 60_000;
    const ids: string[] = [];
    let oldest = 0;
    while (performance.now() < awayUntil) {
      ids.push((await user.plan('a', `away-${ids.length}`)).operation_id);
      oldest = Math.max(oldest, await age());
      await pause(100);
    }
    expect((await user.ledger()).references).toBe(20);
    await broker!.start();
    await user.untilSucceeded(ids);
    expect((await user.ledger()).effects).toBe(20 + ids.length);
    // By the clock of the database: at least most of the time in which nothing could be published.
    expect(oldest).toBeGreaterThan(40);
    await user.until(async () => ((await age()) === 0 ? true : null));
  }, 240_000);

  it('puts records aside that it can not read, passes over unknown ones, and shows them at their operation (public case 38)', async () => {
    const { operation_id: id } = await user.plan('a', 'poisoned');
    await user.untilSucceeded([id]);
    const { calls } = await user.ledger('poisoned');
    const type = (name: string) => ({ ce_specversion: '1.0', ce_id: 'x', ce_type: name, ce_source: '/elsewhere', ce_subject: id });
    const producer = user.kafka().producer({ allowAutoTopicCreation: false });
    await producer.connect();
    await producer.send({
      topic: OPERATION_EVENTS_TOPIC,
      messages: [
        { key: id, value: 'not json', headers: type('onefold.operation.planned.v1') },
        { key: id, value: '{}' },
        { key: null, value: null },
        { key: id, value: '{}', headers: type('onefold.operation.celebrated.v9') },
      ],
    });
    await producer.disconnect();
    const parked = await user.until(async () => {
      const { body } = await user.request<{ parked_records?: { consumer: string; reason: string }[] }>('GET', `/v1/operations/${id}`);
      // Two of the four name the operation and can't be read; each of the two consumers has put both aside.
      return (body.parked_records?.length ?? 0) >= 4 ? body.parked_records! : null;
    });
    expect(new Set(parked.map(({ consumer }) => consumer))).toEqual(new Set(['due-work', 'operation-view']));
    // Its partition goes on.
    await user.untilSucceeded(await user.planMany('behind-poison', 64));
    expect((await user.ledger('poisoned')).calls).toBe(calls);
  }, 120_000);

  it('causes no call when its groups begin again from the earliest offset (public cases 38, 39d)', async () => {
    const consumers = [...user.services('dispatcher'), ...user.services('projector')];
    await user.untilSucceeded(await user.planMany('replayed', 50));
    const before = await user.ledger();
    await Promise.all(consumers.map((service) => service.stop()));
    const admin = user.kafka().admin();
    await admin.connect();
    for (const name of ['due-work', 'operation-view']) {
      await admin.resetOffsets({ groupId: `onefold-${name}`, topic: OPERATION_EVENTS_TOPIC, earliest: true });
    }
    await Promise.all(consumers.map((service) => service.start()));
    const ends = await admin.fetchTopicOffsets(OPERATION_EVENTS_TOPIC);
    for (const name of ['due-work', 'operation-view']) {
      await user.until(async () => {
        const [committed] = await admin.fetchOffsets({ groupId: `onefold-${name}`, topics: [OPERATION_EVENTS_TOPIC] });
        const offsets = new Map(committed!.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
        return ends.every(({ partition, high }) => Number(high) === 0 || (offsets.get(partition) ?? 0) >= Number(high)) ? true : null;
      });
    }
    await admin.disconnect();
    // Rows that the replay made anew are looked at and dropped; a new operation behind them shows that the rows are through.
    await user.untilSucceeded(await user.planMany('behind-replay', 20));
    expect((await user.ledger()).calls).toBe(before.calls + 20);
  }, 180_000);

  it('drains a dispatcher that is told to stop under load: nothing is lost, and no lease is left to wait for', async () => {
    await user.script({ class: 'a' }, 'OK', { times: 200, delay_ms: 300 });
    const planning = user.planMany('drained', 400);
    const [one] = user.services('dispatcher');
    await user.until(async () => ((await user.ledger()).references > 0 ? true : null));
    await user.plan('a', 'drained-0');
    expect(await one!.stop()).toBe(0);
    await one!.start();
    const ids = await planning;
    await user.untilSucceeded(ids);
    const streams = new Set(ids.map(streamOf));
    const outcomes = (await user.log()).filter(({ stream }) => streams.has(stream)).map(({ event }) => event);
    const expired = outcomes.filter(({ type, data }) => type === 'OutcomeUnknown' && 'code' in data && data.code === LEASE_EXPIRED);
    expect(expired).toEqual([]);
    const orders = await Promise.all(['drained-0', 'drained-399'].map((reference) => user.ledger(reference)));
    expect(orders.map(({ effects }) => effects)).toEqual([1, 1]);
  }, 180_000);
});
