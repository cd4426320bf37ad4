import { decodeCloudEvent } from '#adapters/broker/cloud-events.js';
import type { RecordedEvent } from '#domain';
import { freshName, kafkaClient } from '../../../../support/kafka.js';

export interface ReadRecord {
  readonly partition: number;
  readonly offset: number;
  readonly key: Buffer | null;
  readonly event: RecordedEvent;
}

/** Reads a topic from its beginning until `enough` says so; the records in the order of their partitions. */
export async function readTopic(topic: string, enough: (records: readonly ReadRecord[]) => boolean): Promise<ReadRecord[]> {
  const consumer = kafkaClient().consumer({ groupId: freshName('reader'), maxWaitTimeInMs: 200 });
  const records: ReadRecord[] = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topic, fromBeginning: true });
    await new Promise<void>((resolve, reject) => {
      const eachMessage = async ({
        partition,
        message,
      }: Parameters<NonNullable<Parameters<typeof consumer.run>[0]>['eachMessage'] & object>[0]) => {
        try {
          const decoded = decodeCloudEvent(message);
          if (decoded.kind !== 'event') throw new Error(`unexpected type ${decoded.type}`);
          records.push({ partition, offset: Number(message.offset), key: message.key, event: decoded.event });
          if (enough(records)) resolve();
        } catch (error) {
          reject(error as Error);
        }
      };
      consumer.run({ eachMessage }).catch(reject);
    });
  } finally {
    await consumer.disconnect();
  }
  return records;
}

export const distinctIds = (records: readonly ReadRecord[]): number => new Set(records.map(({ event }) => event.id)).size;

/** The events of each stream in the order in which they were first seen. */
export function firstSeen(records: readonly ReadRecord[]): Map<string, RecordedEvent[]> {
  const seen = new Set<string>();
  const streams = new Map<string, RecordedEvent[]>();
  for (const { event } of records) {
    if (seen.has(event.id)) continue;
    seen.add(event.id);
    streams.set(event.stream, [...(streams.get(event.stream) ?? []), event]);
  }
  return streams;
}
