import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startKafkaCluster, type KafkaCluster } from '../../stack/kafka/kafka-cluster.js';
import { createTopic, freshName, freshTopic, kafkaClient, noOwnCluster } from '../support/kafka.js';
import { isAlive } from '../support/processes.js';

const unavailable = await noOwnCluster();

const TOPIC_PARTITION = 0;

async function produce(brokers: readonly string[], topic: string, values: readonly string[]): Promise<void> {
  const producer = kafkaClient(brokers).producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  try {
    await producer.send({ topic, acks: -1, messages: values.map((value) => ({ value, partition: TOPIC_PARTITION })) });
  } finally {
    await producer.disconnect();
  }
}

/** The first `count` values of the topic. */
async function consume(brokers: readonly string[], topic: string, count: number): Promise<string[]> {
  const consumer = kafkaClient(brokers).consumer({ groupId: freshName('group'), maxWaitTimeInMs: 250 });
  await consumer.connect();
  const values: string[] = [];
  try {
    await consumer.subscribe({ topic, fromBeginning: true });
    await new Promise<void>((resolve, reject) => {
      // With `restart` the client goes on by itself: right after a start the group's coordinator is still loading.
      consumer.on('consumer.crash', ({ payload }) => payload.restart || reject(payload.error));
      void consumer.run({
        eachMessage: ({ message }) => {
          values.push(String(message.value));
          if (values.length === count) resolve();
          return Promise.resolve();
        },
      });
    });
  } finally {
    await consumer.disconnect();
  }
  return values;
}

async function leaderOf(brokers: readonly string[], topic: string): Promise<{ leader: number; inSync: readonly number[] }> {
  const admin = kafkaClient(brokers).admin();
  await admin.connect();
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    const { leader, isr } = topics[0]!.partitions[0]!;
    return { leader, inSync: isr };
  } finally {
    await admin.disconnect();
  }
}

describe.skipIf(unavailable)('a cluster of one broker', () => {
  let dataDir: string;
  let kafka: KafkaCluster;
  const ends: unknown[] = [];

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'onefold-test-kafka-'));
    kafka = await startKafkaCluster({ brokers: 1, dataDir, onExit: (end) => ends.push(end) });
  });
  afterAll(async () => {
    await kafka?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  it('keeps what it acknowledged when it is killed, on the same port', async () => {
    const brokers = [kafka.bootstrap];
    const topic = await freshTopic(1, brokers);
    await produce(brokers, topic, ['before']);
    const [node] = kafka.nodes;
    const killed = node!.pid;

    await node!.kill();
    expect(isAlive(killed)).toBe(false);
    await node!.start();

    expect(node!.pid).not.toBe(killed);
    await produce(brokers, topic, ['after']);
    expect(await consume(brokers, topic, 2)).toEqual(['before', 'after']);
    expect(ends).toEqual([]);
  });

  it('answers again after a pause', async () => {
    const brokers = [kafka.bootstrap];
    kafka.nodes[0]!.pause();
    const made = freshTopic(1, brokers);
    kafka.nodes[0]!.resume();
    await expect(made).resolves.toMatch(/^topic-/);
  });

  it('makes no topic that nobody has asked for', async () => {
    const producer = kafkaClient([kafka.bootstrap]).producer({ allowAutoTopicCreation: true, retry: { retries: 0 } });
    await producer.connect();
    await expect(producer.send({ topic: freshName('absent'), messages: [{ value: 'x' }] })).rejects.toThrow();
    await producer.disconnect();
  });

  it('tells of an end that nobody asked for', async () => {
    const { pid } = kafka.nodes[0]!;
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => ends, { timeout: 30_000 }).toEqual([{ id: 1, code: null, signal: 'SIGKILL' }]);
    await kafka.nodes[0]!.start();
  });

  it('goes on with its data after a stop', async () => {
    const topic = await freshTopic(1, [kafka.bootstrap]);
    await produce([kafka.bootstrap], topic, ['kept']);
    await kafka.stop();
    kafka = await startKafkaCluster({ brokers: 1, dataDir });
    expect(await consume([kafka.bootstrap], topic, 1)).toEqual(['kept']);
  });

  it('refuses a folder of a cluster of another size', async () => {
    await expect(startKafkaCluster({ brokers: 3, dataDir })).rejects.toThrow(/holds a Kafka cluster of 1, not of 3/);
  });
});

describe.skipIf(unavailable)('a cluster of three brokers', () => {
  let kafka: KafkaCluster;

  beforeAll(async () => {
    kafka = await startKafkaCluster({ brokers: 3 });
  });
  afterAll(async () => kafka?.stop());

  it('lets another broker lead when the leader is killed, with all that was acknowledged', async () => {
    const brokers = kafka.bootstrap.split(',');
    const topic = freshName('topic');
    await createTopic(topic, 1, brokers);
    await produce(brokers, topic, ['before']);
    await expect.poll(async () => (await leaderOf(brokers, topic)).inSync.length, { timeout: 60_000 }).toBe(3);
    const { leader } = await leaderOf(brokers, topic);
    const dead = kafka.nodes.find(({ id }) => id === leader)!;

    await dead.kill();
    await expect.poll(async () => (await leaderOf(brokers, topic)).leader, { timeout: 60_000 }).not.toBe(leader);
    await produce(brokers, topic, ['meanwhile']);
    expect(await consume(brokers, topic, 2)).toEqual(['before', 'meanwhile']);

    await dead.start();
    await expect.poll(async () => (await leaderOf(brokers, topic)).inSync, { timeout: 60_000 }).toContain(leader);
  });

  it('leaves nothing running after the stop', async () => {
    const pids = kafka.nodes.map(({ pid }) => pid);
    await kafka.stop();
    expect(pids.map(isAlive)).toEqual([false, false, false]);
  });
});
