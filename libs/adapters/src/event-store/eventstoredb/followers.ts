import type { RecordedEvent } from '#domain';
import type { EventStoreDbConnection } from './connection.js';
import { Follower } from './follower.js';

/** A process has two or three readers of the whole log; each follower costs a stream of the connection and a buffer. */
const FOLLOWERS_MAX = 5;
/** A reader polls several times a second; one that has not asked for this long is gone. */
const IDLE_MS = 30_000;
/** A follower that was asked this recently is not given up for another reader, or more readers than followers would only take turns. */
const IN_USE_MS = 5_000;
/** A server that ends subscriptions at once must not be asked for one at every poll. */
const REOPEN_AFTER_MS = 1_000;
/** Where reads have ended lately, by which a reader is recognised when it comes back. */
const ENDS_MAX = 64;

/** Subscriptions for the readers of the whole log, opened when one comes back to where its last read ended. */
export class Followers {
  private readonly followers = new Set<Follower>();
  private readonly ends = new Set<bigint>();
  private openFrom = 0;
  private closed = false;

  constructor(private readonly connection: EventStoreDbConnection) {}

  /**
   * What a follower has ready behind `after`, or else what `read` finds there. A follower with nothing ready proves nothing: only a read
   * can tell that the end was reached.
   */
  async readAfter(after: bigint, limit: number, read: () => Promise<readonly RecordedEvent[]>): Promise<readonly RecordedEvent[]> {
    this.closeIdle();
    const follower = [...this.followers].find((each) => each.standsAt(after));
    const ready = follower?.take(after, limit) ?? [];
    if (ready.length > 0) return ready;
    const isBack = this.ends.has(after);
    const events = await read();
    const end = events.at(-1)?.position ?? after;
    this.remember(end);
    if (follower && this.followers.has(follower)) {
      if (events.length > 0) follower.expect(end);
    } else if (isBack) this.open(end);
    return events;
  }

  /** Ends all subscriptions; readers find what they miss by reading, and get new ones. */
  drop(): void {
    for (const follower of this.followers) {
      follower.close();
      this.remember(follower.at);
    }
    this.followers.clear();
  }

  close(): void {
    this.closed = true;
    this.drop();
  }

  private open(position: bigint): void {
    const now = performance.now();
    if (this.closed || now < this.openFrom || [...this.followers].some((each) => each.at === position)) return;
    if (this.followers.size >= FOLLOWERS_MAX) {
      const oldest = [...this.followers].reduce((a, b) => (a.askedAt <= b.askedAt ? a : b));
      if (now - oldest.askedAt < IN_USE_MS) return;
      this.end(oldest);
    }
    const onEnd = (ended: Follower, at: bigint) => {
      this.followers.delete(ended);
      this.remember(at);
      this.openFrom = performance.now() + REOPEN_AFTER_MS;
    };
    this.followers.add(new Follower(this.connection, position, onEnd));
  }

  private closeIdle(): void {
    const since = performance.now() - IDLE_MS;
    for (const follower of this.followers) if (follower.askedAt < since) this.end(follower);
  }

  private end(follower: Follower): void {
    follower.close();
    this.followers.delete(follower);
  }

  private remember(end: bigint): void {
    this.ends.delete(end);
    this.ends.add(end);
    if (this.ends.size > ENDS_MAX) this.ends.delete(this.ends.values().next().value!);
  }
}
