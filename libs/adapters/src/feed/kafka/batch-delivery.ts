import kafkajs, { type EachBatchPayload, type KafkaMessage } from 'kafkajs';
import type { FeedConsumer, RecordedEvent } from '#domain';
import { decodeCloudEvent, UnreadableRecord } from '../../broker/cloud-events.js';
import { RECORD_BYTES_MAX } from '../../broker/kafka/topics.js';
import { operationIdOf, type Parking, type ParkReason, type RefusedRecord } from './parking.js';
import { isPassing } from './passing-faults.js';
import type { SharedTurns } from './shared-turns.js';

export interface DeliveryOptions {
  readonly consumer: Pick<FeedConsumer, 'name'>;
  /** Calls the consumer. */
  readonly turns: SharedTurns;
  readonly parking: Parking;
  readonly onError: (error: Error) => void;
  readonly onProgress?: ((position: bigint, events: number) => void) | undefined;
  readonly onParked?: ((operationId: string) => Promise<void>) | undefined;
}

/** What the batches of all partitions tell together. */
export class DeliveryState {
  /** Records of an event type that this program does not know. */
  ignored = 0;
  parked = 0;
  /** Partitions that stand still in front of a failure. */
  readonly failing = new Set<number>();
  /** Offset of the next record, by partition, since the last assignment. */
  readonly nextOffsets = new Map<number, bigint>();
}

interface Entry {
  readonly event: RecordedEvent;
  readonly message: KafkaMessage;
}

/** Bounds one call of the consumer and the statement behind it; a batch of the broker has about as many events. */
const CHUNK_EVENTS_MAX = 1_000;
/** A failure of the moment passes within these tries, and one that lasts costs its events about a second. */
const TRIES_MAX = 3;
const RETRY_DELAY_MS = 200;
const RETRY_DELAY_MAX_MS = 5_000;
/** The client itself sends one each 3 s at most, and a stop waits no longer than this. */
const HEARTBEAT_EVERY_MS = 500;
/**
 * The call of other partitions under way and then one's own, each three statements that all take their longest. After that the broker may
 * count us as gone, and the watchdog as dead.
 */
const HANDLE_MS_MAX = 200_000;

/** The feed was stopped, or the partition taken away: what is left of the batch comes again, here or elsewhere. */
class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/**
 * One batch of one partition: hands its events on in order, in chunks, and moves the offset behind each chunk that was taken. A record that
 * can't be taken is put aside. Nothing but the client's own errors, which tell of a rebalance, leaves `run`: another would kill the client.
 */
export class BatchDelivery {
  private readonly partition: number;
  private resolved = -1n;
  /** What the client said at a heartbeat: the batch ends here, and it learns of it. */
  private lost: unknown = null;

  /** @param isOpen false once the feed was stopped */
  constructor(
    private readonly options: DeliveryOptions,
    private readonly state: DeliveryState,
    private readonly payload: EachBatchPayload,
    private readonly isOpen: () => boolean,
  ) {
    this.partition = payload.batch.partition;
  }

  async run(): Promise<void> {
    try {
      await this.deliver(this.payload.batch.messages);
    } catch (error) {
      if (error instanceof Interrupted) return;
      if (error instanceof kafkajs.KafkaJSError) throw error;
      this.report(error);
      await this.linger();
    } finally {
      this.state.failing.delete(this.partition);
    }
  }

  private async deliver(messages: readonly KafkaMessage[]): Promise<void> {
    let chunk: Entry[] = [];
    let last: KafkaMessage | null = null;
    const finish = async () => {
      await this.hand(chunk);
      chunk = [];
      if (last) await this.resolve(last);
    };
    for (const message of messages) {
      const read = this.read(message);
      if (typeof read === 'string') {
        await finish();
        await this.park(this.refused(message, read));
        await this.resolve(message);
      } else if (read) chunk.push({ event: read, message });
      else this.state.ignored++;
      last = message;
      if (chunk.length === CHUNK_EVENTS_MAX) await finish();
    }
    await finish();
  }

  /** Null for an event of a type that is not ours. */
  private read(message: KafkaMessage): RecordedEvent | ParkReason | null {
    if ((message.value?.length ?? 0) > RECORD_BYTES_MAX) return 'too_large';
    try {
      const decoded = decodeCloudEvent(message);
      return decoded.kind === 'event' ? decoded.event : null;
    } catch (error) {
      this.options.onError(error as Error);
      return error instanceof UnreadableRecord ? error.reason : 'undecodable';
    }
  }

  /** Until they are taken or put aside. */
  private async hand(entries: readonly Entry[], triesMax = TRIES_MAX): Promise<void> {
    if (entries.length === 0) return;
    for (let tries = 1, waits = 1; ;) {
      this.checkActive();
      try {
        const events = entries.map(({ event }) => event);
        await this.withHeartbeats(this.options.turns.handle(events, () => this.checkActive()));
        break;
      } catch (error) {
        if (error instanceof Interrupted || error === this.lost) throw error;
        this.report(error);
        if (isPassing(error)) await this.wait(waits++);
        else if (tries < triesMax) await this.wait(tries++);
        else if (entries.length > 1) return this.handHalves(entries);
        else if (await this.parkRefused(entries[0]!)) return;
        else await this.wait(waits++);
      }
    }
    this.state.failing.delete(this.partition);
    this.options.onProgress?.(entries.at(-1)!.event.position, entries.length);
  }

  /** The whole was tried often enough: its parts are tried once each, until those that fail stand alone. */
  private async handHalves(entries: readonly Entry[]): Promise<void> {
    const middle = Math.ceil(entries.length / 2);
    for (const half of [entries.slice(0, middle), entries.slice(middle)]) {
      await this.hand(half, half.length === 1 ? TRIES_MAX : 1);
      await this.resolve(half.at(-1)!.message);
    }
  }

  /**
   * @returns false where the database did not take the row: then it may be at fault, not the event, however the failure looked, and the
   * event is tried again
   */
  private async parkRefused({ message }: Entry): Promise<boolean> {
    const record = this.refused(message, 'refused');
    try {
      await this.withHeartbeats(this.options.parking.note(record));
    } catch (error) {
      this.report(error);
      return false;
    }
    await this.copyAndLook(record);
    return true;
  }

  /** Until the row, the copy and the look have all been made: only then does the offset move on. */
  private async park(record: RefusedRecord): Promise<void> {
    await this.untilDone(() => this.options.parking.note(record));
    await this.copyAndLook(record);
  }

  private async copyAndLook(record: RefusedRecord): Promise<void> {
    const operationId = operationIdOf(record.message);
    const { parking, onParked } = this.options;
    await this.untilDone(() => parking.publish(record));
    if (operationId !== null && onParked) await this.untilDone(() => onParked(operationId));
    this.state.parked++;
    this.state.failing.delete(this.partition);
  }

  private async untilDone(step: () => Promise<void>): Promise<void> {
    for (let waits = 1; ;) {
      this.checkActive();
      try {
        return await this.withHeartbeats(step());
      } catch (error) {
        this.report(error);
        await this.wait(waits++);
      }
    }
  }

  private refused(message: KafkaMessage, reason: ParkReason): RefusedRecord {
    const { topic, partition } = this.payload.batch;
    return { place: { consumer: this.options.consumer.name, topic, partition, offset: BigInt(message.offset) }, message, reason };
  }

  /** The client takes the last call as the place to go on from, also backwards: only a higher one gets through to it. */
  private async resolve({ offset }: KafkaMessage): Promise<void> {
    if (BigInt(offset) <= this.resolved) return;
    this.resolved = BigInt(offset);
    this.payload.resolveOffset(offset);
    this.state.nextOffsets.set(this.partition, this.resolved + 1n);
    await this.heartbeat();
  }

  private report(error: unknown): void {
    this.state.failing.add(this.partition);
    this.options.onError(error instanceof Error ? error : new Error('Something was thrown that is no Error.', { cause: error }));
  }

  private checkActive(): void {
    if (this.lost) throw this.lost;
    if (!this.isOpen() || !this.payload.isRunning() || this.payload.isStale()) throw new Interrupted('The batch has ended.');
  }

  private async heartbeat(): Promise<void> {
    if (this.lost) throw this.lost;
    try {
      await this.payload.heartbeat();
    } catch (error) {
      // The client dies of its own programming errors; wrapped, it tries again.
      throw error instanceof kafkajs.KafkaJSError ? error : new kafkajs.KafkaJSError(error as Error);
    }
  }

  /** The client has no heartbeat of its own while a batch is worked on. What it says is kept: the work under way is finished first. */
  private async withHeartbeats<T>(work: Promise<T>): Promise<T> {
    const endAtMs = performance.now() + HANDLE_MS_MAX;
    const timer = setInterval(() => {
      if (performance.now() < endAtMs) return void this.heartbeat().catch((error: unknown) => (this.lost ??= error));
      clearInterval(timer);
      this.report(new Error(`The consumer has been at one chunk for ${HANDLE_MS_MAX / 1_000} s.`));
    }, HEARTBEAT_EVERY_MS);
    try {
      return await work;
    } finally {
      clearInterval(timer);
    }
  }

  /** @param waits how many there were, with this one */
  private async wait(waits: number): Promise<void> {
    const endAtMs = performance.now() + Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MS * 2 ** Math.min(waits - 1, 10));
    for (let leftMs = endAtMs - performance.now(); leftMs > 0; leftMs = endAtMs - performance.now()) {
      await new Promise((resolve) => setTimeout(resolve, Math.min(leftMs, HEARTBEAT_EVERY_MS)));
      this.checkActive();
      await this.heartbeat();
    }
  }

  /** After a fault of our own: the batch comes again, but not at once. */
  private async linger(): Promise<void> {
    for (let leftMs = RETRY_DELAY_MAX_MS; leftMs > 0 && this.isOpen() && this.payload.isRunning(); leftMs -= HEARTBEAT_EVERY_MS) {
      await new Promise((resolve) => setTimeout(resolve, HEARTBEAT_EVERY_MS));
      await this.heartbeat();
    }
  }
}
