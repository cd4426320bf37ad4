import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeCloudEvent } from '#adapters/broker/cloud-events.js';
import { RECORD_BYTES_MAX } from '#adapters/broker/kafka/topics.js';
import { noKafka } from '../../../../support/kafka.js';
import { freshOperation, KafkaFeedWorld, readTopic, until, type RawRecord } from './kafka-feed-world.js';

describe.skipIf(noKafka())('A Kafka feed that meets a record it can not take', () => {
  let world: KafkaFeedWorld;

  beforeEach(async () => {
    world = await KafkaFeedWorld.open(1);
  });
  afterEach(() => world.close());

  it('puts unreadable ones aside with the reason, and goes on behind them', async () => {
    const ids = Array.from({ length: 7 }, freshOperation);
    const [a, b, c, d, e, f, good] = ids as [string, string, string, string, string, string, string];
    const sound = (id: string): RawRecord => encodeCloudEvent(world.event(id, 0));
    await world.admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: 2, name: world.topic, configEntries: [{ name: 'max.message.bytes', value: String(2 * RECORD_BYTES_MAX) }] }],
    });
    await world.publish(world.event(good, 0));
    const large = Buffer.from(JSON.stringify({ reason: 'x'.repeat(RECORD_BYTES_MAX) }));
    await world.send([
      { ...sound(a), headers: {} },
      { ...sound(b), value: '{"not json' },
      { ...sound(c), value: null },
      { ...sound(d), key: e },
      { ...sound(f), value: '[]' },
      { ...sound(f), key: null },
    ]);
    await world.send([{ ...sound(f), value: large }]);
    await world.publish(world.event(good, 1));

    const { feed, consumer, looked } = world.feed();
    feed.start();
    await until(() => consumer.handled.length === 2);
    expect(consumer.revisionsOf(good)).toEqual([0, 1]);
    await until(async () => (await world.committed(consumer.name)) === 9);
    expect(feed.counts).toEqual({ ignored: 0, parked: 7, restarts: 0 });
    expect(looked).toEqual([a, b, c, e, f, f]);

    const copies = await readTopic(world.admin, world.parkedTopic);
    const told = copies.map(({ key, headers }) => [key, headers['onefold_parked_reason'], headers['onefold_parked_offset']]);
    expect(told).toEqual([
      [a, 'missing_header', '1'],
      [b, 'not_json', '2'],
      [c, 'no_value', '3'],
      [e, 'key_mismatch', '4'],
      [f, 'bad_value', '5'],
      [null, 'key_mismatch', '6'],
      [f, 'too_large', '7'],
    ]);
    expect(copies[1]!.value?.toString()).toBe('{"not json');
    expect(copies[1]!.headers).toMatchObject({
      ce_subject: b,
      onefold_parked_consumer: consumer.name,
      onefold_parked_topic: world.topic,
      onefold_parked_partition: '0',
    });
    // Larger than the parked topic takes: the original still stands where its headers say.
    expect(copies[6]).toMatchObject({ value: null, headers: { onefold_parked_value_left_out: String(large.length) } });

    const rows = await world.parked.forOperation(f);
    expect(rows).toMatchObject([
      { consumer: consumer.name, topic: world.topic, partition: 0, offset: 7n, operationId: f, reason: 'too_large' },
      { consumer: consumer.name, topic: world.topic, partition: 0, offset: 5n, operationId: f, reason: 'bad_value' },
    ]);
  });

  it('passes over an event type that it does not know', async () => {
    const id = freshOperation();
    const newer = encodeCloudEvent(world.event(id, 0));
    await world.send([{ ...newer, headers: { ...newer.headers, ce_type: 'onefold.operation.refunded.v1' } }]);
    await world.publish(world.event(id, 1));
    const { feed, consumer } = world.feed();
    feed.start();
    await until(() => consumer.handled.length === 1);
    await until(async () => (await world.committed(consumer.name)) === 2);
    expect(consumer.revisionsOf(id)).toEqual([1]);
    expect(feed.counts).toEqual({ ignored: 1, parked: 0, restarts: 0 });
    expect(await readTopic(world.admin, world.parkedTopic)).toEqual([]);
  });

  it('finds the one event that the consumer refuses again and again', async () => {
    const ids = Array.from({ length: 12 }, freshOperation);
    const refused = ids[7]!;
    const { feed, consumer, looked } = world.feed();
    consumer.before = async (events) => {
      if (events.some(({ stream }) => stream.endsWith(refused))) throw new TypeError('x is not a function');
    };
    await world.publish(...ids.map((id) => world.event(id, 0)));
    feed.start();
    await until(() => consumer.handled.length === 11);
    await until(async () => (await world.committed(consumer.name)) === 12);
    expect(new Set(consumer.handled.map(({ stream }) => stream.slice('operation-'.length)))).toEqual(
      new Set(ids.filter((id) => id !== refused)),
    );
    expect(await world.parked.forOperation(refused)).toMatchObject([{ offset: 7n, reason: 'refused' }]);
    expect(looked).toEqual([refused]);
    expect(feed.counts.parked).toBe(1);
  });

  it('tries an event again rather than park it while the database is away, however the failure looked', async () => {
    const id = freshOperation();
    const { feed, consumer } = world.feed({
      parked: Object.assign(Object.create(world.parked) as typeof world.parked, {
        add: async () => {
          consumer.before = async () => undefined;
          throw new Error('The database is away.');
        },
      }),
    });
    consumer.before = async () => {
      throw new Error('Something else.');
    };
    await world.publish(world.event(id, 0));
    feed.start();
    await until(() => consumer.handled.length === 1);
    await until(async () => (await world.committed(consumer.name)) === 1);
    expect(feed.counts.parked).toBe(0);
    expect(await readTopic(world.admin, world.parkedTopic)).toEqual([]);
  });

  it('leaves the offset in front of the record until it is put aside', async () => {
    const id = freshOperation();
    let isAway = true;
    let looks = 0;
    const { feed, consumer } = world.feed({
      onParked: async () => {
        looks++;
        if (isAway) throw new Error('The look failed.');
      },
    });
    await world.send([{ key: id, value: 'no event' }]);
    feed.start();
    await until(() => looks === 2);
    expect(await world.committed(consumer.name)).toBeNull();
    expect(feed.healthy()).toBe(false);
    isAway = false;
    await until(async () => (await world.committed(consumer.name)) === 1);
    await until(() => feed.healthy());
    expect(feed.counts.parked).toBe(1);
  });
});
