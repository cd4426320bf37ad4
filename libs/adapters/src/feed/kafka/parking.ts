import type { IHeaders, Kafka, KafkaMessage, Producer } from 'kafkajs';
import { isOperationId } from '#domain';
import type { UnreadableReason } from '../../broker/cloud-events.js';
import type { ParkedRecords, RecordPlace } from '../../postgres/parked-records.js';

/**
 * Why a record was put aside; stable codes. Beside those of an unreadable one: `too_large` (above `RECORD_BYTES_MAX`), `undecodable` (the
 * reader itself failed on it), `refused` (the consumer failed on it again and again, while the database was there).
 */
export type ParkReason = UnreadableReason | 'too_large' | 'undecodable' | 'refused';

export interface RefusedRecord {
  readonly place: RecordPlace;
  readonly message: Pick<KafkaMessage, 'key' | 'value' | 'headers'>;
  readonly reason: ParkReason;
}

export interface ParkingOptions {
  /** A client of its own for each call. */
  readonly kafka: () => Kafka;
  readonly parkedTopic: string;
  readonly parked: Pick<ParkedRecords, 'add'>;
}

/** There are few parked records: in one partition they stay in order, and it is there however many there are. */
const PARTITION = 0;
/** About 10 s in all; the caller tries again for as long as it runs. */
const RETRY = { retries: 5, initialRetryTime: 100, maxRetryTime: 3_000 };

/** Puts records aside: a copy of each in a topic of their own, for tools, and a row in the database, for people. */
export class Parking {
  private producer: Producer | null = null;
  private lastSend: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: ParkingOptions) {}

  /** The row; the same again changes nothing. @throws the driver's error */
  note({ place, message, reason }: RefusedRecord): Promise<void> {
    return this.options.parked.add({ ...place, operationId: operationIdOf(message), reason });
  }

  /** The copy; the same again is one more. @throws what kept it from being acknowledged by all replicas in sync */
  publish(record: RefusedRecord): Promise<void> {
    // One unfinished send at a time: the partitions of a batch are worked on side by side.
    const send = this.lastSend.then(() => this.sendOrDrop(record));
    this.lastSend = send.catch(() => undefined); // The caller has it.
    return send;
  }

  async close(): Promise<void> {
    await this.lastSend;
    await this.drop();
  }

  private async sendOrDrop(record: RefusedRecord): Promise<void> {
    try {
      await this.send(record, false);
    } catch (error) {
      if (isTooLarge(error)) return this.send(record, true);
      await this.drop();
      throw error;
    }
  }

  private async send({ place, message, reason }: RefusedRecord, withoutValue: boolean): Promise<void> {
    const producer = (this.producer ??= this.options
      .kafka()
      .producer({ allowAutoTopicCreation: false, maxInFlightRequests: 1, retry: RETRY }));
    await producer.connect();
    const { parkedTopic: topic } = this.options;
    const headers = parkedHeaders(place, message, reason);
    if (withoutValue) headers['onefold_parked_value_left_out'] = String(message.value?.length ?? 0);
    const copy = { partition: PARTITION, key: message.key, value: withoutValue ? null : message.value, headers };
    const results = await producer.send({ topic, acks: -1, messages: [copy] });
    const [result] = results;
    // The client has been seen to resolve a send that lacked an answer.
    if (results.length !== 1 || result?.topicName !== topic || result.partition !== PARTITION || result.errorCode !== 0) {
      throw new Error(`The broker did not acknowledge the parked record: ${results.length} answers, error code ${result?.errorCode}.`);
    }
  }

  private async drop(): Promise<void> {
    const producer = this.producer;
    this.producer = null;
    await producer?.disconnect().catch(() => undefined); // Broken already; the next send makes a new one.
  }
}

/** The original ones first. A null value has become an empty one: the client can read such a header but not write it. */
export function parkedHeaders(place: RecordPlace, { headers = {} }: Pick<KafkaMessage, 'headers'>, reason: ParkReason): IHeaders {
  const kept = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.map(orEmpty) : orEmpty(value)]);
  return {
    ...(Object.fromEntries(kept) as IHeaders),
    onefold_parked_reason: reason,
    onefold_parked_consumer: place.consumer,
    onefold_parked_topic: place.topic,
    onefold_parked_partition: String(place.partition),
    onefold_parked_offset: String(place.offset),
  };
}

function orEmpty<T>(value: T | null | undefined): T | string {
  return value ?? '';
}

/** The operation that a record is about, as far as its key tells. */
export function operationIdOf({ key }: Pick<KafkaMessage, 'key'>): string | null {
  const text = key?.toString() ?? '';
  return isOperationId(text) ? text : null;
}

function isTooLarge(error: unknown): boolean {
  const { type, cause } = error as { type?: string; cause?: { type?: string } };
  return [type, cause?.type].some((name) => name === 'MESSAGE_TOO_LARGE' || name === 'RECORD_LIST_TOO_LARGE');
}
