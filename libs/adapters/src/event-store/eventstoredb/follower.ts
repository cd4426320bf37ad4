import { START, streamNameFilter, type AllStreamSubscription } from '@eventstore/db-client';
import type { RecordedEvent } from '#domain';
import type { EventStoreDbConnection } from './connection.js';
import { STREAM_PREFIX, toRecordedEvent, weightOf } from './stored-form.js';

/** Two batches of the readers there are. Beyond it the server is made to wait. */
const BUFFER_EVENTS_MAX = 4_096;
/** Large payloads must not make that a gigabyte. */
const BUFFER_BYTES_MAX = 8_000_000;

/**
 * A catch-up subscription for one reader, which is known by the position it asks from. It holds every event of ours between that
 * position and the last one received; its checkpoints are not looked at, since they run ahead of the events.
 */
export class Follower {
  private buffer: RecordedEvent[] = [];
  private bytes = 0;
  private received: bigint;
  /** Where a plain read on the reader's behalf has ended. */
  private expected: bigint | null = null;
  private readonly subscription: AllStreamSubscription;
  private isOver = false;
  askedAt = performance.now();

  /**
   * @param position everything up to here was handed out
   * @param onEnd called once when the subscription is dead, not when it is closed
   */
  constructor(
    connection: EventStoreDbConnection,
    private position: bigint,
    private readonly onEnd: (follower: Follower, position: bigint) => void,
  ) {
    this.received = position;
    const client = connection.current;
    const fromPosition = position === 0n ? START : { commit: position, prepare: position };
    const filter = streamNameFilter({ prefixes: [STREAM_PREFIX] });
    this.subscription = client.subscribeToAll({ fromPosition, filter, ...connection.callOptions });
    this.subscription.on('error', (error) => {
      connection.failed(client, error);
      this.end();
    });
    // A subscription may also just end.
    this.subscription.on('end', () => this.end());
    this.subscription.on('close', () => this.end());
    this.subscription.on('data', ({ event }) => event && this.receive(event));
  }

  /** Whether this follower's reader is the one that asks from `after`. */
  standsAt(after: bigint): boolean {
    if (after === this.position || this.indexBehind(after) > 0) return true;
    // Behind its own place nothing is kept any more: another reader that comes by there must not be taken for this one.
    return this.expected !== null && this.expected > this.position && after === this.expected;
  }

  /**
   * Events right behind `after`, none when none has come yet. They are kept until the reader asks from further on, so that it may ask
   * for them again.
   */
  take(after: bigint, limit: number): readonly RecordedEvent[] {
    this.askedAt = performance.now();
    if (after !== this.position) this.forgetUpTo(after);
    return this.buffer.slice(0, limit);
  }

  /** The reader was given events up to `position` by another way. */
  expect(position: bigint): void {
    this.expected = position;
  }

  get at(): bigint {
    return this.position;
  }

  close(): void {
    this.isOver = true;
    this.buffer = [];
    this.subscription.pause();
    void this.subscription.unsubscribe().catch(() => undefined); // It may never have begun.
  }

  private receive(event: Parameters<typeof toRecordedEvent>[0]): void {
    if (this.isOver) return;
    let recorded: RecordedEvent;
    try {
      recorded = toRecordedEvent(event);
    } catch {
      return this.end(); // The plain read that comes next meets it too, and says what is wrong with it.
    }
    if (recorded.position <= this.received) return this.end();
    this.received = recorded.position;
    if (recorded.position <= this.position) return;
    this.buffer.push(recorded);
    this.bytes += weightOf(recorded);
    if (this.isFull()) this.subscription.pause();
  }

  private forgetUpTo(after: bigint): void {
    const count = this.buffer.findIndex(({ position }) => position > after);
    const gone = this.buffer.splice(0, count === -1 ? this.buffer.length : count);
    for (const event of gone) this.bytes -= weightOf(event);
    this.position = after;
    if (!this.isOver && !this.isFull()) this.subscription.resume();
  }

  /** Index behind the buffered event at this position, 0 when there is none. */
  private indexBehind(position: bigint): number {
    let [low, high] = [0, this.buffer.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.buffer[middle]!.position < position) low = middle + 1;
      else high = middle;
    }
    return this.buffer[low]?.position === position ? low + 1 : 0;
  }

  private isFull(): boolean {
    return this.buffer.length >= BUFFER_EVENTS_MAX || this.bytes >= BUFFER_BYTES_MAX;
  }

  private end(): void {
    if (this.isOver) return;
    this.close();
    this.onEnd(this, this.position);
  }
}
