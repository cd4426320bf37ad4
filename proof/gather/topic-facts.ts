import { randomUUID } from 'node:crypto';
import type { Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs';
import { decodeCloudEvent, UnreadableRecord } from '#adapters/broker/cloud-events.js';
import { createKafka } from '#adapters/broker/kafka/client.js';
import { OPERATION_EVENTS_TOPIC } from '#adapters/broker/kafka/topics.js';
import { createLogger } from '#adapters/observability/logger.js';
import { streamOf, type RecordedEvent } from '#domain';
import type { TopicRecord } from '../checker/facts.js';

export interface TopicMessage {
  readonly partition: number;
  readonly message: KafkaMessage;
  /** Null where it is no event of ours. */
  readonly event: RecordedEvent | null;
}

/** Without a batch for this long the broker does not answer: reading goes at thousands of records a second. */
const SILENCE_MS_MAX = 60_000;

/** Hands over every record between the earliest offset and where the topic ended at the start. @throws Error where the broker falls silent */
export async function readTopic(
  brokers: readonly string[],
  take: (message: TopicMessage) => void,
  topic = OPERATION_EVENTS_TOPIC,
): Promise<void> {
  const kafka = createKafka({ brokers, clientId: 'onefold-proof', logger: createLogger({ process: 'proof', level: 'silent' }) });
  const admin = kafka.admin();
  await admin.connect();
  const offsets = await admin.fetchTopicOffsets(topic).finally(() => admin.disconnect());
  const left = new Map(offsets.flatMap(({ partition, low, high }) => (BigInt(high) > BigInt(low) ? [[partition, BigInt(high)]] : [])));
  if (left.size === 0) return;
  // A group of its own, so that nobody's offsets are moved.
  const consumer = kafka.consumer({ groupId: `onefold-proof-${randomUUID()}`, allowAutoTopicCreation: false });
  await consumer.connect();
  try {
    await consumer.subscribe({ topic, fromBeginning: true });
    await readTo(left, consumer, take);
  } finally {
    await consumer.disconnect();
  }
}

function readTo(left: Map<number, bigint>, consumer: Consumer, take: (message: TopicMessage) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const silent = setTimeout(
      () =>
        reject(new Error(`The topic gave nothing for ${SILENCE_MS_MAX / 1_000} s; partitions ${[...left.keys()].join(', ')} are left.`)),
      SILENCE_MS_MAX,
    );
    const eachBatch = async ({ batch }: EachBatchPayload) => {
      const { partition, messages } = batch;
      const end = left.get(partition);
      if (end === undefined) return;
      silent.refresh();
      for (const message of messages) {
        if (BigInt(message.offset) >= end) break;
        take({ partition, message, event: eventOf(message) });
      }
      if (BigInt(batch.lastOffset()) + 1n >= end) left.delete(partition);
      if (left.size > 0) return;
      clearTimeout(silent);
      resolve();
    };
    consumer.run({ autoCommit: false, eachBatch }).catch((error: Error) => {
      clearTimeout(silent);
      reject(error);
    });
  });
}

function eventOf(message: KafkaMessage): RecordedEvent | null {
  try {
    const decoded = decodeCloudEvent(message);
    return decoded.kind === 'event' ? decoded.event : null;
  } catch (error) {
    // For the checker to say: the client would try the batch again and again, and the topic would seem silent.
    if (error instanceof UnreadableRecord) return null;
    throw error;
  }
}

const STREAM_PREFIX_LENGTH = streamOf('').length;

/**
 * The topic as the checker wants it. What is no event of ours has no event id, and so belongs to no event of the log.
 * @param canaries a record's text is kept only where it holds one of them, since a long run has hundreds of thousands of records
 */
export async function topicFacts(brokers: readonly string[], canaries: readonly string[], topic?: string): Promise<TopicRecord[]> {
  const records: TopicRecord[] = [];
  const take = ({ partition, message, event }: TopicMessage) => {
    const text = textOf(message);
    records.push({
      partition,
      offset: Number(message.offset),
      eventId: event?.id ?? '',
      operationId: event?.stream.slice(STREAM_PREFIX_LENGTH) ?? String(message.key ?? ''),
      revision: event?.revision ?? -1,
      tenant: event?.metadata.tenant ?? '',
      text: canaries.some((canary) => text.includes(canary)) ? text : '',
    });
  };
  await readTopic(brokers, take, topic);
  return records;
}

function textOf({ headers = {}, value }: KafkaMessage): string {
  return `${Object.entries(headers)
    .map(([name, header]) => `${name}: ${String(header)}\n`)
    .join('')}${String(value ?? '')}`;
}
