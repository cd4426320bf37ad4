import { connect, type Socket } from 'node:net';
import { Kafka, logLevel, type Consumer } from 'kafkajs';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { streamOf, type RecordedEvent } from '#domain';
import { freshName, kafkaBrokers, noKafka } from '../../../../support/kafka.js';
import { freshOperation, KafkaFeedWorld, until, type RecordingConsumer } from './kafka-feed-world.js';

const PARTITIONS = 4;

/** Revisions as they were handed over first, by operation: at least once and in order means that these are all, in order. */
function firstSeen(consumers: readonly RecordingConsumer[], order: readonly RecordedEvent[]): Map<string, number[]> {
  const seen = new Map<string, number[]>();
  const ids = new Set<string>();
  const published = new Set(order.map(({ id }) => id));
  for (const { id, stream, revision } of consumers.flatMap(({ handled }) => handled)) {
    if (!published.has(id) || ids.has(id)) continue;
    ids.add(id);
    seen.set(stream, [...(seen.get(stream) ?? []), revision]);
  }
  return seen;
}

describe.skipIf(noKafka())('Kafka feeds of one consumer', () => {
  let world: KafkaFeedWorld;

  beforeAll(async () => {
    world = await KafkaFeedWorld.open(PARTITIONS);
  });
  afterAll(() => world.close());

  const publishRevision = async (ids: readonly string[], revision: number): Promise<RecordedEvent[]> => {
    const events = ids.map((id) => world.event(id, revision));
    await world.publish(...events);
    return events;
  };

  describe.concurrent('at once', () => {
    it('share the partitions, and lose nothing while members join and leave (public case 38)', async ({ expect }) => {
      const name = freshName('consumer');
      const ids = Array.from({ length: 40 }, freshOperation);
      const published: RecordedEvent[] = [];
      const members = Array.from({ length: 3 }, () => world.feed({ name }));
      const [a, b, c] = members as [(typeof members)[0], (typeof members)[0], (typeof members)[0]];
      const log: RecordedEvent[] = [];
      for (const { consumer } of members) {
        consumer.before = async (events) => void log.push(...events);
      }
      let revision = 0;
      const goOn = async () => published.push(...(await publishRevision(ids, revision++)));
      const upTo = async (condition: () => boolean) => {
        while (!condition()) {
          await goOn();
          await new Promise((resolve) => setTimeout(resolve, 50)); // A trickle: what counts is that there is always something under way.
        }
      };
      a.feed.start();
      await upTo(() => a.joins.at(-1) === PARTITIONS && a.consumer.handled.length > 0);
      b.feed.start();
      await upTo(() => b.joins.at(-1) === 2 && a.joins.at(-1) === 2 && b.consumer.handled.length > 0);
      c.feed.start();
      await upTo(() => (c.joins.at(-1) ?? 0) >= 1 && c.consumer.handled.length > 0);
      const leaving = a.feed.stop();
      await goOn();
      await leaving;
      await upTo(() => b.joins.at(-1) === 2 && c.joins.at(-1) === 2);
      await b.feed.stop();
      await upTo(() => c.joins.at(-1) === PARTITIONS);
      await goOn();
      await until(() => {
        const handled = new Set(members.flatMap(({ consumer }) => consumer.handled.map(({ id }) => id)));
        return published.every(({ id }) => handled.has(id));
      });
      // Over all members: a revision is first handed over only after the one before it.
      const next = new Map(ids.map((id) => [streamOf(id), 0]));
      for (const { stream, revision: each } of log) {
        if (each > (next.get(stream) ?? Infinity)) expect.fail(`${stream} skipped to revision ${each}`);
        if (each === next.get(stream)) next.set(stream, each + 1);
      }
      expect([...next.values()]).toEqual(ids.map(() => revision));
      await c.feed.stop();
    });

    it('hand over again what one of them had begun when it was killed (public case 25)', async ({ expect }) => {
      const name = freshName('consumer');
      const ids = Array.from({ length: 8 }, freshOperation);
      const line = new SeverableLine();
      const killed = world.feed({ name, kafka: () => line.client() });
      killed.feed.start();
      const published = await publishRevision(ids, 0);
      await until(() => firstSeen([killed.consumer], published).size === ids.length);
      const begun: RecordedEvent[] = [];
      killed.consumer.before = async (events) => {
        begun.push(...events);
        await new Promise(() => undefined);
      };
      published.push(...(await publishRevision(ids, 1)));
      await until(() => begun.length > 0);
      line.sever();
      const heir = world.feed({ name });
      heir.feed.start();
      // The group waits for the dead member as long as its session lasts, 30 s.
      await until(() => firstSeen([killed.consumer, heir.consumer], published).size === ids.length && heir.joins.at(-1) === PARTITIONS);
      await until(() => ids.every((id) => heir.consumer.revisionsOf(id).includes(1)));
      const seen = firstSeen([killed.consumer, heir.consumer], published);
      for (const id of ids) expect(seen.get(streamOf(id))).toEqual([0, 1]);
      await heir.feed.stop();
    });

    it('replace a client that has gone silent', async ({ expect }) => {
      const made: Consumer[] = [];
      const onConsumer = (consumer: Consumer) => {
        made.push(consumer);
        if (made.length === 1) consumer.run = async () => undefined;
      };
      const { feed, consumer, errors, joins } = world.feed({ onConsumer, silenceMsMax: 3_000 });
      const published = await publishRevision([freshOperation()], 0);
      feed.start();
      await until(() => errors.length === 1);
      expect(errors[0]!.name).toBe('ConsumerSilent');
      expect(feed.healthy()).toBe(false);
      await until(() => firstSeen([consumer], published).size === 1);
      expect(joins).toEqual([PARTITIONS]);
      expect(feed.counts.restarts).toBe(1);
      expect(feed.healthy()).toBe(true);
      await feed.stop();
    });

    it('replace a client that has crashed for good', async ({ expect }) => {
      const made: Consumer[] = [];
      const crashes: boolean[] = [];
      const onConsumer = (consumer: Consumer) => {
        made.push(consumer);
        consumer.on(consumer.events.CRASH, ({ payload }) => void crashes.push(payload.restart));
        if (made.length > 1) return;
        const run = consumer.run.bind(consumer);
        consumer.run = (config) =>
          run({
            ...config,
            eachBatch: async () => {
              throw new TypeError('x is not a function');
            },
          });
      };
      const { feed, consumer } = world.feed({ onConsumer });
      const published = await publishRevision([freshOperation()], 0);
      feed.start();
      await until(() => firstSeen([consumer], published).size === 1);
      expect(crashes).toEqual([false]);
      expect(feed.counts.restarts).toBe(1);
      await feed.stop();
    });

    it('come back when the brokers do', async ({ expect }) => {
      const line = new SeverableLine();
      const { feed, consumer } = world.feed({ kafka: () => line.client() });
      line.sever();
      const published = await publishRevision([freshOperation()], 0);
      feed.start();
      await until(() => line.refused > 0);
      expect(feed.healthy()).toBe(false);
      line.mend();
      await until(() => firstSeen([consumer], published).size === 1);
      line.sever();
      published.push(...(await publishRevision([freshOperation()], 0)));
      const refused = line.refused;
      await until(() => line.refused > refused);
      line.mend();
      await until(() => firstSeen([consumer], published).size === 2);
      await feed.stop();
    });

    it('stop within their bound also where the brokers are away', async ({ expect }) => {
      const line = new SeverableLine();
      const { feed } = world.feed({ kafka: () => line.client() });
      line.sever();
      feed.start();
      await until(() => line.refused > 0);
      await feed.stop();
      expect(feed.healthy()).toBe(false);
    });
  });
});

/** The network of one process: once severed, its connections are gone and no new one comes about. */
class SeverableLine {
  refused = 0;
  private readonly sockets = new Set<Socket>();
  private isSevered = false;

  client(): Kafka {
    return new Kafka({
      brokers: [...kafkaBrokers()],
      clientId: 'onefold-test',
      logLevel: logLevel.NOTHING,
      socketFactory: ({ host, port, onConnect }) => {
        const socket = connect({ host, port });
        socket.once('connect', onConnect);
        this.sockets.add(socket);
        if (this.isSevered) this.cut(socket);
        return socket;
      },
    });
  }

  sever(): void {
    this.isSevered = true;
    for (const socket of this.sockets) this.cut(socket);
  }

  mend(): void {
    this.isSevered = false;
  }

  private cut(socket: Socket): void {
    this.refused++;
    this.sockets.delete(socket);
    // As a cable does it: the client meets an error, not an orderly end.
    setImmediate(() => socket.destroy(new Error('The line is severed.')));
  }
}
