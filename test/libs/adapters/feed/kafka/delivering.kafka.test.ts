import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogUnavailable } from '#domain';
import { freshName, noKafka } from '../../../../support/kafka.js';
import { freshOperation, KafkaFeedWorld, until } from './kafka-feed-world.js';

describe.skipIf(noKafka())('A Kafka feed', () => {
  let world: KafkaFeedWorld;

  beforeEach(async () => {
    world = await KafkaFeedWorld.open();
  });
  afterEach(() => world.close());

  it('hands over each operation in order, whatever is between', async () => {
    const operations = Array.from({ length: 20 }, freshOperation);
    for (let revision = 0; revision < 150; revision += 50) {
      const events = Array.from({ length: 50 }, (_, step) => operations.map((id) => world.event(id, revision + step))).flat();
      await world.publish(...events);
    }
    const { feed, consumer } = world.feed();
    feed.start();
    await until(() => consumer.handled.length >= 3_000);
    for (const id of operations) expect(consumer.revisionsOf(id)).toEqual(Array.from({ length: 150 }, (_, revision) => revision));
    await until(async () => (await world.committed(consumer.name)) === 3_000);
    expect(await feed.lag()).toBe(0);
    expect(feed.healthy()).toBe(true);
  });

  it('hands an event over as it was published (public case 5)', async () => {
    const event = world.event(freshOperation(), 0, 'ünïcode');
    await world.publish(event);
    const { feed, consumer } = world.feed();
    feed.start();
    await until(() => consumer.handled.length === 1);
    expect(consumer.handled).toEqual([event]);
  });

  it('goes on where it stopped, and from the beginning after a reset', async () => {
    const id = freshOperation();
    await world.publish(world.event(id, 0), world.event(id, 1));
    const name = freshName('consumer');
    const first = world.feed({ name });
    first.feed.start();
    await until(() => first.consumer.handled.length === 2);
    await first.feed.stop();

    await world.publish(world.event(id, 2));
    const second = world.feed({ name });
    second.feed.start();
    await until(() => second.consumer.handled.length === 1);
    await second.feed.stop();
    expect(second.consumer.revisionsOf(id)).toEqual([2]);

    await world.admin.resetOffsets({ groupId: `onefold-${name}`, topic: world.topic, earliest: true });
    const third = world.feed({ name });
    third.feed.start();
    await until(() => third.consumer.handled.length === 3);
    expect(third.consumer.revisionsOf(id)).toEqual([0, 1, 2]);
  });

  it('is not ready before it has joined, nor after it was stopped', async () => {
    const { feed, joins } = world.feed();
    expect(feed.healthy()).toBe(false);
    expect(await feed.lag()).toBeNull();
    feed.start();
    expect(feed.healthy()).toBe(false);
    await until(() => joins.length === 1);
    expect(feed.healthy()).toBe(true);
    expect(await feed.lag()).toBe(0);
    await feed.stop();
    expect(feed.healthy()).toBe(false);
  });

  it('counts what it has not finished', async () => {
    const id = freshOperation();
    const { feed, consumer } = world.feed();
    const release = consumer.hold();
    feed.start();
    await world.publish(world.event(id, 0));
    await until(() => consumer.calls === 1);
    await world.publish(world.event(id, 1), world.event(id, 2));
    expect(await feed.lag()).toBe(3);
    release();
    await until(async () => (await feed.lag()) === 0);
    expect(consumer.revisionsOf(id)).toEqual([0, 1, 2]);
  });

  it('waits while the database is away, and parks nothing', async () => {
    const id = freshOperation();
    const { feed, consumer, errors } = world.feed();
    const failures = [
      new LogUnavailable('The log is away.'),
      Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
      Object.assign(new Error('the database system is shutting down'), { severity: 'FATAL', code: '57P03' }),
      new Error('Connection terminated unexpectedly'),
      new LogUnavailable('Still away.'),
    ];
    consumer.before = async () => {
      const failure = failures[consumer.calls - 1];
      if (failure) throw failure;
    };
    // One event alone: a failure of its own would have it parked at the third try.
    await world.publish(world.event(id, 0));
    feed.start();
    await until(() => consumer.calls >= 2);
    expect(feed.healthy()).toBe(false);
    expect(await world.committed(consumer.name)).toBeNull();
    await until(() => consumer.handled.length === 1);
    expect(errors).toEqual(failures);
    expect(feed.counts).toEqual({ ignored: 0, parked: 0, restarts: 0 });
    expect(await world.parked.forOperation(id)).toEqual([]);
    await until(() => feed.healthy());
  });

  it('outlives a programming error of the consumer', async () => {
    const id = freshOperation();
    const { feed, consumer } = world.feed();
    consumer.before = async () => {
      if (consumer.calls === 1) throw new TypeError('x is not a function');
    };
    await world.publish(world.event(id, 0));
    feed.start();
    await until(() => consumer.handled.length === 1);
    await world.publish(world.event(id, 1));
    await until(() => consumer.handled.length === 2);
    expect(feed.counts).toEqual({ ignored: 0, parked: 0, restarts: 0 });
  });
});
