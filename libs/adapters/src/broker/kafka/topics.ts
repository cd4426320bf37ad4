import kafkajs, { type Admin, type Kafka } from 'kafkajs';
import { BrokerUnreachable } from './api-versions.js';

/** Every event of the log, by operation; see `cloud-events.ts` for the records. */
export const OPERATION_EVENTS_TOPIC = 'onefold.operation-events.v1';
/** Records that a consumer could not take, as they were. */
export const PARKED_TOPIC = `${OPERATION_EVENTS_TOPIC}-parked`;

/** Larger than any event: a request has at most 256 kB, an answer of a provider 1 MB, and a third more as sealed text. */
export const RECORD_BYTES_MAX = 4_000_000;
/** Room for the framing of a batch around a record of that size. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;

const DAY_MS = 86_400_000;
/**
 * A consumer that is away for longer is not missed by anybody and starts again from the log, which keeps everything; the topic only carries.
 * Longer than any holiday, short enough for a disk.
 */
const EVENTS_RETENTION_MS = 30 * DAY_MS;
/** Parked records wait for a person; there are few of them, and a year is the longest that anybody can claim to have wanted to look. */
const PARKED_RETENTION_MS = 365 * DAY_MS;

export interface TopicOptions {
  /** Of a topic that is created; one that exists keeps its own number. */
  readonly partitions: number;
  readonly replicationFactor: number;
  /** Go on with an existing topic that may lose what it has acknowledged. */
  readonly allowWeakDurability?: boolean;
}

/** An existing topic may lose records that it has acknowledged, or can't take them. */
export class WeakTopic extends Error {
  override readonly name = 'WeakTopic';

  constructor(
    readonly topic: string,
    readonly setting: string,
    readonly value: string,
    rule: string,
  ) {
    super(
      `The topic ${topic} has ${setting} = ${value}; ${rule}. ` +
        'Change it (kafka-configs.sh, or kafka-reassign-partitions.sh for replicas), or set ONEFOLD_ALLOW_WEAK_DURABILITY to go on without that safety.',
    );
  }
}

/** A topic is not there and can't be created. */
export class TopicNotCreated extends Error {
  override readonly name = 'TopicNotCreated';
}

/** A controller that has just been elected may need this long. */
const CREATE_TIMEOUT_MS = 15_000;
const LEADER_POLL_MS = 100;

/**
 * Creates the topics that are missing, and holds the settings of the others against what an acknowledgement promises.
 * @throws WeakTopic TopicNotCreated
 * @throws BrokerUnreachable where the client gives up on one of the brokers
 */
export async function ensureTopics(kafka: Kafka, options: TopicOptions): Promise<void> {
  try {
    await ensureWith(kafka.admin(), options);
  } catch (cause) {
    if (!(cause instanceof kafkajs.KafkaJSError)) throw cause;
    throw new BrokerUnreachable(
      `The Kafka brokers answered at first, and then not when the topics were looked at (${typeOf(cause)}). Check that they stay up, and that ` +
        'this machine reaches each of them at the address which it advertises (advertised.listeners): it may differ from KAFKA_BROKERS.',
      { cause },
    );
  }
}

async function ensureWith(admin: Admin, options: TopicOptions): Promise<void> {
  await admin.connect();
  try {
    const present = new Set(await admin.listTopics());
    for (const [topic, retentionMs] of [
      [OPERATION_EVENTS_TOPIC, EVENTS_RETENTION_MS],
      [PARKED_TOPIC, PARKED_RETENTION_MS],
    ] as const) {
      const created = !present.has(topic) && (await createTopic(admin, topic, retentionMs, options));
      await waitForLeaders(admin, topic);
      if (!created && !options.allowWeakDurability) await onceKnown(topic, () => checkTopic(admin, topic, options));
    }
  } finally {
    await admin.disconnect();
  }
}

/** Each question may go to another broker, and one of them may not have heard yet of a topic that another process has just created. */
async function onceKnown(topic: string, check: () => Promise<void>): Promise<void> {
  const endsAt = performance.now() + CREATE_TIMEOUT_MS;
  for (;;) {
    try {
      return await check();
    } catch (cause) {
      if (!['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE'].includes(typeOf(cause))) throw cause;
      if (performance.now() >= endsAt)
        throw new TopicNotCreated(`Not every broker knows the topic ${topic} (${typeOf(cause)}).`, { cause });
    }
    await new Promise((resolve) => setTimeout(resolve, LEADER_POLL_MS));
  }
}

/** @returns false where somebody else was faster */
async function createTopic(admin: Admin, topic: string, retentionMs: number, options: TopicOptions): Promise<boolean> {
  const { partitions, replicationFactor } = options;
  const config = {
    'cleanup.policy': 'delete',
    'retention.ms': String(retentionMs),
    // By time alone: a busy day must not push out what a consumer has not read yet.
    'retention.bytes': '-1',
    // Acknowledged on two disks, as far as there are two.
    'min.insync.replicas': String(Math.min(2, replicationFactor)),
    'unclean.leader.election.enable': 'false',
    'max.message.bytes': String(MESSAGE_BYTES_MAX),
  };
  const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
  try {
    return await admin.createTopics({
      topics: [{ topic, numPartitions: partitions, replicationFactor, configEntries }],
      waitForLeaders: false,
      timeout: CREATE_TIMEOUT_MS,
    });
  } catch (error) {
    const type = typeOf(error);
    const wayOut =
      type === 'INVALID_REPLICATION_FACTOR'
        ? `there are fewer brokers than the ${replicationFactor} replicas asked for: start more, or lower ONEFOLD_KAFKA_REPLICATION_FACTOR`
        : 'create it by hand, or see what the broker says';
    throw new TopicNotCreated(`The topic ${topic} could not be created (${type}): ${wayOut}.`, { cause: error });
  }
}

/**
 * Until each partition can be written. The client's own wait ends with an error where the broker that is asked has not yet heard of the
 * topic, which is usual in a cluster without ZooKeeper.
 * @throws TopicNotCreated
 */
export async function waitForLeaders(admin: Admin, topic: string): Promise<void> {
  const endsAt = performance.now() + CREATE_TIMEOUT_MS;
  for (;;) {
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      if (topics[0]!.partitions.every(({ leader }) => leader >= 0)) return;
    } catch (cause) {
      if (performance.now() >= endsAt) throw new TopicNotCreated(`The topic ${topic} could not be read (${typeOf(cause)}).`, { cause });
    }
    if (performance.now() >= endsAt) throw new TopicNotCreated(`The topic ${topic} has partitions without a leader: start more brokers.`);
    await new Promise((resolve) => setTimeout(resolve, LEADER_POLL_MS));
  }
}

function typeOf(error: unknown): string {
  const { errors, type, name } = error as { errors?: readonly { type?: string }[]; type?: string; name?: string };
  return errors?.[0]?.type ?? type ?? name ?? 'unknown error';
}

async function checkTopic(admin: Admin, topic: string, { replicationFactor }: TopicOptions): Promise<void> {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
  const { resources } = await admin.describeConfigs({
    resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
    includeSynonyms: false,
  });
  const settings = new Map(resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]));
  const replicas = Math.min(...topics[0]!.partitions.map(({ replicas }) => replicas.length));
  const weak = (setting: string, value: string, rule: string) => new WeakTopic(topic, setting, value, rule);
  const valueOf = (setting: string) => settings.get(setting) ?? '';
  if (replicas < replicationFactor) {
    throw weak('replication factor', String(replicas), `ONEFOLD_KAFKA_REPLICATION_FACTOR asks for ${replicationFactor}`);
  }
  if (valueOf('unclean.leader.election.enable') !== 'false') {
    const rule = 'a broker that has fallen behind could become leader and drop what was acknowledged';
    throw weak('unclean.leader.election.enable', valueOf('unclean.leader.election.enable'), rule);
  }
  if (replicas >= 3 && Number(valueOf('min.insync.replicas')) < 2) {
    throw weak(
      'min.insync.replicas',
      valueOf('min.insync.replicas'),
      'a record could be acknowledged by one broker alone, it must be at least 2',
    );
  }
  if (valueOf('cleanup.policy') !== 'delete') {
    throw weak('cleanup.policy', valueOf('cleanup.policy'), 'it must be delete: compaction keeps only the last event of an operation');
  }
  if (Number(valueOf('max.message.bytes')) < MESSAGE_BYTES_MAX) {
    throw weak(
      'max.message.bytes',
      valueOf('max.message.bytes'),
      `it must be at least ${MESSAGE_BYTES_MAX}, or the largest events never pass`,
    );
  }
}
