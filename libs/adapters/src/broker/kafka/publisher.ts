import kafkajs, { type Kafka, type Message, type Producer, type RecordMetadata } from 'kafkajs';
import type { RecordedEvent } from '#domain';
import type { Logger } from '../../observability/logger.js';
import { encodeCloudEvent, UnencodableEvent } from '../cloud-events.js';
import { partitionOf } from './partitioner.js';
import { OPERATION_EVENTS_TOPIC, RECORD_BYTES_MAX } from './topics.js';

/** Hands events to other processes. */
export interface EventPublisher {
  /**
   * Resolves when each of the events is known to be stored; the order of an operation's events is kept. After a rejection any of them may be
   * stored, or be stored yet: publish them again from the last one that was certain. One call at a time.
   * @param signal stops before the next send; the sends under way are awaited
   * @throws PublishUncertain UnencodableEvent (then none was sent)
   */
  publish(events: readonly RecordedEvent[], signal?: AbortSignal): Promise<void>;
}

/** Which of the events are stored is not known. */
export class PublishUncertain extends Error {
  override readonly name = 'PublishUncertain';
}

export interface KafkaPublisherOptions {
  readonly kafka: Kafka;
  readonly logger: Logger;
  readonly topic?: string;
  readonly sendTimeoutMs?: number;
}

/** Enough to make the cost of a request small, few enough to be sent again. */
const BATCH_EVENTS_MAX = 500;
/** Kafka's initial limit of a batch is 1 MiB; a larger event goes alone, which the topic's own limit allows. */
const BATCH_BYTES_MAX = 900_000;
/** Names and framing of the headers of one record. */
const RECORD_OVERHEAD_BYTES = 600;
/** A leader's fall and the election after it have taken up to 12 s; a send that takes much longer than that is given up on. */
const SEND_TIMEOUT_MS = 30_000;
/** How long sends that were not given up on may take to end once another one has failed. */
const SETTLE_TIMEOUT_MS = 30_000;
/** Given up on in about 16 s of waiting; what follows is a new producer, and the log read again. */
const RETRY = { retries: 8, initialRetryTime: 100, maxRetryTime: 5_000 };

/**
 * Publishes with kafkajs, within the rules that make it lossless. The rules, and what happens without them:
 * - one partition a send: a leader that moves during a send to several brokers loses messages in silence (tulios/kafkajs#1303, #1798);
 * - one unfinished send a partition: two of them can take the same sequence numbers, and the broker drops one as a duplicate (#1005);
 * - what a send resolves with is checked: exactly this topic and partition, and no error;
 * - a producer with a rejected send is finished: its next batch would reuse the uncertain sequence numbers.
 */
export class KafkaPublisher implements EventPublisher {
  private readonly topic: string;
  private readonly sendTimeoutMs: number;
  private session: ProducerSession | null = null;
  private isBusy = false;

  constructor(private readonly options: KafkaPublisherOptions) {
    this.topic = options.topic ?? OPERATION_EVENTS_TOPIC;
    this.sendTimeoutMs = options.sendTimeoutMs ?? SEND_TIMEOUT_MS;
  }

  async publish(events: readonly RecordedEvent[], signal?: AbortSignal): Promise<void> {
    if (this.isBusy) throw new Error('A publish is under way; events are published one call at a time, or their order would be lost.');
    this.isBusy = true;
    try {
      const messages = events.map(encode);
      this.session ??= await this.open();
      await this.send(this.session, messages, signal);
    } finally {
      this.isBusy = false;
    }
  }

  /** After the last publish has ended. */
  async close(): Promise<void> {
    const session = this.session;
    this.session = null;
    await session?.producer.disconnect();
  }

  private async open(): Promise<ProducerSession> {
    const { kafka } = this.options;
    const producer = kafka.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
      retry: RETRY,
    });
    const connect = async () => {
      await producer.connect();
      return { producer, partitions: await this.countPartitions() };
    };
    const connecting = connect();
    try {
      return await within(this.sendTimeoutMs, connecting);
    } catch (cause) {
      this.discard(producer, [connecting]);
      throw new PublishUncertain('No producer could be connected; nothing was sent.', { cause });
    }
  }

  /** Asked once a producer: were partitions added meanwhile, an operation's events must not move in the middle of a run. */
  private async countPartitions(): Promise<number> {
    const admin = this.options.kafka.admin({ retry: RETRY });
    await admin.connect();
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [this.topic] });
      return topics[0]!.partitions.length;
    } finally {
      await admin.disconnect();
    }
  }

  private async send(session: ProducerSession, messages: readonly SizedMessage[], signal?: AbortSignal): Promise<void> {
    const { producer, partitions } = session;
    const failed = new AbortController();
    const sends: Promise<unknown>[] = [];
    const lanes = [...byPartition(messages, partitions)].map(async ([partition, lane]) => {
      for (const batch of batches(lane)) {
        if (failed.signal.aborted || signal?.aborted) return;
        const send = producer.send({ topic: this.topic, acks: -1, messages: batch.map(({ message }) => ({ ...message, partition })) });
        sends.push(send);
        try {
          this.check(await within(this.sendTimeoutMs, send), partition);
        } catch (error) {
          failed.abort(error);
        }
      }
    });
    await Promise.all(lanes);
    if (failed.signal.aborted) {
      this.session = null;
      this.discard(producer, sends);
      throw new PublishUncertain('A send failed; a new producer will publish again.', { cause: failed.signal.reason });
    }
    if (signal?.aborted) throw new PublishUncertain('Publishing was stopped.', { cause: signal.reason });
  }

  private check(stored: readonly RecordMetadata[], partition: number): void {
    const [only] = stored;
    const isStored = stored.length === 1 && only!.topicName === this.topic && only!.partition === partition && only!.errorCode === 0;
    if (!isStored) throw new Error(`The broker's answer does not say that the batch for partition ${partition} was stored.`);
  }

  /**
   * In the background: what is disconnected while a send is under way connects again by itself. All have ended, but for one that has run
   * into the deadline.
   */
  private discard(producer: Producer, pending: readonly Promise<unknown>[]): void {
    const disconnect = () =>
      producer.disconnect().catch((err: unknown) => this.options.logger.warn({ err }, 'a producer did not disconnect'));
    const settled = Promise.allSettled(pending);
    void within(SETTLE_TIMEOUT_MS, settled)
      .catch(() => undefined) // Disconnected all the same, and once more when the last send has ended.
      .then(disconnect)
      .then(() => settled)
      .then(disconnect);
  }
}

interface ProducerSession {
  readonly producer: Producer;
  readonly partitions: number;
}

interface SizedMessage {
  readonly key: Buffer;
  readonly message: Message;
  readonly bytes: number;
}

function encode(event: RecordedEvent): SizedMessage {
  const { key: operationId, value, headers } = encodeCloudEvent(event);
  const bytes = value.length + RECORD_OVERHEAD_BYTES;
  if (bytes > RECORD_BYTES_MAX) throw new UnencodableEvent(event.position, `it has more than ${RECORD_BYTES_MAX} bytes`);
  const key = Buffer.from(operationId);
  return { key, bytes, message: { key, value, headers } };
}

function byPartition(messages: readonly SizedMessage[], partitions: number): Map<number, SizedMessage[]> {
  const lanes = new Map<number, SizedMessage[]>();
  for (const message of messages) {
    const partition = partitionOf(message.key, partitions);
    const lane = lanes.get(partition);
    if (lane) lane.push(message);
    else lanes.set(partition, [message]);
  }
  return lanes;
}

function* batches(lane: readonly SizedMessage[]): Generator<SizedMessage[]> {
  let batch: SizedMessage[] = [];
  let bytes = 0;
  for (const message of lane) {
    if (batch.length > 0 && (batch.length >= BATCH_EVENTS_MAX || bytes + message.bytes > BATCH_BYTES_MAX)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(message);
    bytes += message.bytes;
  }
  if (batch.length > 0) yield batch;
}

async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`No answer within ${timeoutMs} ms.`)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
