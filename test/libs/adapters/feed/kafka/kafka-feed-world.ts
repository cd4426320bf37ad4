import { randomBytes, randomUUID } from 'node:crypto';
import type { Admin, Consumer, IHeaders, Kafka, Producer } from 'kafkajs';
import { encodeCloudEvent } from '#adapters/broker/cloud-events.js';
import { partitionOf } from '#adapters/broker/kafka/partitioner.js';
import { KafkaFeed, type KafkaFeedOptions } from '#adapters/feed/kafka/kafka-feed.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { migrate } from '#adapters/postgres/migrate.js';
import { ParkedRecords } from '#adapters/postgres/parked-records.js';
import { streamOf, type FeedConsumer, type RecordedEvent } from '#domain';
import { failure, sampleMetadata } from '../../../../support/event-log-samples.js';
import { freshName, freshTopic, kafkaClient } from '../../../../support/kafka.js';
import { createTestDatabase } from '../../../../support/test-database.js';

export const freshOperation = (): string => `op_${randomBytes(16).toString('hex')}`;

/** Looks until it is so; the test's own time-out bounds it. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

export interface RawRecord {
  readonly key: string | null;
  readonly value: Buffer | string | null;
  readonly headers?: IHeaders;
}

/** Remembers what it was given, by operation and revision; `before` may fail or wait. */
export class RecordingConsumer implements FeedConsumer {
  readonly handled: RecordedEvent[] = [];
  calls = 0;
  before: (events: readonly RecordedEvent[]) => Promise<void> = async () => undefined;

  constructor(readonly name: string) {}

  async handle(events: readonly RecordedEvent[]): Promise<void> {
    this.calls++;
    await this.before(events);
    this.handled.push(...events);
  }

  /** Each call waits until what this returns is called. */
  hold(): () => void {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    this.before = () => released;
    return release;
  }

  revisionsOf(operationId: string): number[] {
    return this.handled.filter(({ stream }) => stream === streamOf(operationId)).map(({ revision }) => revision);
  }
}

export interface TestFeed {
  readonly feed: KafkaFeed;
  readonly consumer: RecordingConsumer;
  readonly errors: Error[];
  readonly looked: string[];
  /** Assignments so far, each the number of partitions. */
  readonly joins: number[];
}

export interface TestFeedOptions extends Partial<Omit<KafkaFeedOptions, 'consumer'>> {
  /** Of the group; another feed of the same name shares the partitions. */
  readonly name?: string;
  /** Told of each kafkajs consumer that the feed makes. */
  readonly onConsumer?: (consumer: Consumer) => void;
}

/** A topic, its parked topic and a database of its own, and feeds over them. */
export class KafkaFeedWorld {
  private position = 0n;
  private readonly feeds: KafkaFeed[] = [];

  private constructor(
    readonly topic: string,
    readonly parkedTopic: string,
    readonly partitions: number,
    readonly pool: Pool,
    readonly parked: ParkedRecords,
    readonly admin: Admin,
    private readonly producer: Producer,
    private readonly dropDatabase: () => Promise<void>,
  ) {}

  static async open(partitions = 2): Promise<KafkaFeedWorld> {
    const database = await createTestDatabase();
    const pool = openPool({ url: database.url });
    await migrate(pool);
    const [topic, parkedTopic] = await Promise.all([readyTopic(partitions), readyTopic(1)]);
    const admin = kafkaClient().admin();
    const producer = kafkaClient().producer({ allowAutoTopicCreation: false });
    await Promise.all([admin.connect(), producer.connect()]);
    return new KafkaFeedWorld(topic, parkedTopic, partitions, pool, new ParkedRecords(pool), admin, producer, () => database.drop());
  }

  /** Made, not started. */
  feed({ name = freshName('consumer'), onConsumer, ...options }: TestFeedOptions = {}): TestFeed {
    const consumer = new RecordingConsumer(name);
    const errors: Error[] = [];
    const looked: string[] = [];
    const joins: number[] = [];
    const kafka = options.kafka ?? kafkaClient;
    const watch = (each: Consumer) => {
      each.on(each.events.GROUP_JOIN, ({ payload }) => void joins.push(payload.memberAssignment[this.topic]?.length ?? 0));
      onConsumer?.(each);
    };
    const feed = new KafkaFeed({
      topic: this.topic,
      sessionTimeoutMs: 30_000,
      parkedTopic: this.parkedTopic,
      consumer,
      parked: this.parked,
      onError: (error) => void errors.push(error),
      onParked: async (operationId) => void looked.push(operationId),
      ...options,
      kafka: () => withConsumers(kafka(), watch),
    });
    this.feeds.push(feed);
    return { feed, consumer, errors, looked, joins };
  }

  /** An operation's event, as the log would have recorded it. */
  event(operationId: string, revision: number, reason = 'none'): RecordedEvent {
    return {
      id: randomUUID(),
      stream: streamOf(operationId),
      revision,
      position: ++this.position,
      chain: randomBytes(32).toString('hex'),
      event: failure(reason),
      metadata: sampleMetadata(),
    };
  }

  /** Published as the relay does it. */
  async publish(...events: readonly RecordedEvent[]): Promise<void> {
    await this.send(events.map(encodeCloudEvent));
  }

  /** Any record, in the partition of its key; without one in the first. */
  async send(records: readonly RawRecord[]): Promise<void> {
    const messages = records.map((record) => ({
      ...record,
      partition: record.key === null ? 0 : partitionOf(Buffer.from(record.key), this.partitions),
    }));
    await this.producer.send({ topic: this.topic, acks: -1, messages });
  }

  async members(name: string): Promise<readonly string[]> {
    const { groups } = await this.admin.describeGroups([`onefold-${name}`]);
    return groups[0]!.members.map(({ memberId }) => memberId);
  }

  async groupState(name: string): Promise<string> {
    const { groups } = await this.admin.describeGroups([`onefold-${name}`]);
    return groups[0]!.state;
  }

  /** Sum over the partitions; null while one of them has none. */
  async committed(name: string): Promise<number | null> {
    const [answer] = await this.admin.fetchOffsets({ groupId: `onefold-${name}`, topics: [this.topic] });
    const offsets = answer!.partitions.map(({ offset }) => Number(offset));
    return offsets.some((offset) => offset < 0) ? null : offsets.reduce((sum, offset) => sum + offset, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.feeds.map((feed) => feed.stop()));
    await Promise.all([this.admin.disconnect(), this.producer.disconnect(), this.pool.end()]);
    await this.dropDatabase();
  }
}

/** Right after its creation a broker may still answer that it does not know the topic. */
async function readyTopic(partitions: number, triesLeft = 5): Promise<string> {
  try {
    return await freshTopic(partitions);
  } catch (error) {
    if (triesLeft === 0 || (error as { type?: string }).type !== 'UNKNOWN_TOPIC_OR_PARTITION') throw error;
    return readyTopic(partitions, triesLeft - 1);
  }
}

function withConsumers(kafka: Kafka, onConsumer: (consumer: Consumer) => void): Kafka {
  const make = kafka.consumer.bind(kafka);
  kafka.consumer = (config) => {
    const consumer = make(config);
    onConsumer(consumer);
    return consumer;
  };
  return kafka;
}

/** What is in the first partition of a topic, up to the end as it is now. */
export async function readTopic(
  admin: Admin,
  topic: string,
): Promise<{ key: string | null; value: Buffer | null; headers: Record<string, string> }[]> {
  const [mark] = await admin.fetchTopicOffsets(topic);
  const wanted = Number(mark!.high);
  const records: { key: string | null; value: Buffer | null; headers: Record<string, string> }[] = [];
  if (wanted === 0) return records;
  const consumer = kafkaClient().consumer({ groupId: freshName('reader'), maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message: { key, value, headers = {} } }) => {
      const texts = Object.entries(headers).map(([name, header]) => [name, String(header)]);
      records.push({ key: key?.toString() ?? null, value, headers: Object.fromEntries(texts) as Record<string, string> });
    },
  });
  await until(() => records.length >= wanted);
  await consumer.disconnect();
  return records;
}
