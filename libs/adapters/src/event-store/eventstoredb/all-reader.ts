import { BACKWARDS, END, FORWARDS, START, type Position, type ReadPosition } from '@eventstore/db-client';
import { UnreadableEvent, type RecordedEvent } from '#domain';
import type { EventStoreDbConnection } from './connection.js';
import { drain } from './drain.js';
import { STREAM_PREFIX, toRecordedEvent, weightOf, type ReadEvent } from './stored-form.js';

/** Events of all streams in one call: large enough to skip foreign ones quickly, small enough to be answered within its deadline. */
const PAGE_EVENTS_MAX = 1_000;
/** What a poll asks for that most likely finds nothing. */
const PAGE_EVENTS_MIN = 32;
/** A page of events with the largest payloads must not fill the memory of a reader; several readers page at once. */
const PAGE_BYTES_MAX = 16_000_000;
/** A million foreign events in a row. The next read goes on where this one stopped, so that its caller hears of it in between. */
const PAGES_MAX = 1_000;
/** Once something was found, this many further pages are worth looking at to fill the caller's limit. */
const FILLING_PAGES_MAX = 8;
/** More readers than any process has; each stands at one place. */
const PLACES_MAX = 32;

interface Page {
  readonly events: readonly RecordedEvent[];
  /** Place of the last event that was seen, ours or not. */
  readonly last: Position | null;
  readonly isEnd: boolean;
  /** What stands right behind `events`. */
  readonly unreadable: UnreadableEvent | null;
}

/** Reads our events out of `$all` by plain reads. It remembers how far it has looked behind each place without finding any. */
export class AllReader {
  private readonly scanned = new Map<bigint, Position>();
  /** Nothing of ours lies between `position` and `scannedTo`. */
  private head: { readonly position: bigint; readonly scannedTo: bigint } = { position: 0n, scannedTo: -1n };

  constructor(private readonly connection: EventStoreDbConnection) {}

  /**
   * Events behind `after` in order, at most `limit`; none means that the end was reached.
   * @throws UnreadableEvent where the very first of them is one
   */
  async readAfter(after: bigint, limit: number): Promise<readonly RecordedEvent[]> {
    const found: RecordedEvent[] = [];
    let bytes = 0;
    let from: ReadPosition = this.scanned.get(after) ?? (after === 0n ? START : { commit: after, prepare: after });
    for (let pages = 0, filling = 0; pages < PAGES_MAX; pages++) {
      const page = await this.page(from, limit - found.length, PAGE_BYTES_MAX - bytes);
      if (page.unreadable && found.length + page.events.length === 0) throw page.unreadable;
      found.push(...page.events);
      bytes += page.events.reduce((sum, event) => sum + weightOf(event), 0);
      if (page.last) from = page.last;
      const isFull = found.length >= limit || bytes >= PAGE_BYTES_MAX || page.unreadable !== null;
      if (!isFull && page.last) this.remember(found.at(-1)?.position ?? after, page.last);
      if (page.isEnd || isFull || (found.length > 0 && ++filling > FILLING_PAGES_MAX)) return found;
    }
    throw new Error(`${PAGES_MAX * PAGE_EVENTS_MAX} events of others were passed; the next read goes on behind them.`);
  }

  /** Position of our last event, 0 when there is none: backwards from the end, as far as was not looked at before. */
  async readHead(): Promise<bigint> {
    const known = this.head;
    let from: ReadPosition = END;
    let newest = null as bigint | null;
    let head = null as bigint | null;
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const count = pages === 0 ? PAGE_EVENTS_MIN : PAGE_EVENTS_MAX;
      let seen = 0;
      await this.read(from, count, BACKWARDS, ({ streamId, position }) => {
        seen++;
        from = position!;
        newest ??= position!.commit;
        if (streamId.startsWith(STREAM_PREFIX)) head = position!.commit;
        else if (position!.commit <= known.scannedTo) head = known.position;
        return head === null;
      });
      if (seen < count) head ??= 0n;
      if (head === null) continue;
      // Two searches may overlap; the one that saw more is remembered.
      if (newest !== null && newest > this.head.scannedTo) this.head = { position: head, scannedTo: newest };
      return head;
    }
    throw new Error(`None of the last ${PAGES_MAX * PAGE_EVENTS_MAX} events belongs to this log.`);
  }

  private async page(from: ReadPosition, wanted: number, bytesMax: number): Promise<Page> {
    // One more than wanted: a read that begins at an event gives that event again.
    const count = Math.max(PAGE_EVENTS_MIN, Math.min(wanted + 1, PAGE_EVENTS_MAX));
    const passed = typeof from === 'string' ? -1n : from.commit;
    const events: RecordedEvent[] = [];
    let [seen, bytes] = [0, 0];
    let last = null as Position | null;
    let unreadable = null as UnreadableEvent | null;
    const end = await this.read(from, count, FORWARDS, (event) => {
      seen++;
      last = event.position!;
      if (!event.streamId.startsWith(STREAM_PREFIX) || last.commit <= passed) return true;
      const recorded = recordedOrUnreadable(event);
      if (recorded instanceof UnreadableEvent) {
        unreadable = recorded;
        return false;
      }
      events.push(recorded);
      bytes += weightOf(recorded);
      return events.length < wanted && bytes < bytesMax;
    });
    return { events, last, isEnd: end === 'end' && seen < count, unreadable };
  }

  private read(from: ReadPosition, maxCount: number, direction: typeof FORWARDS | typeof BACKWARDS, take: (event: ReadEvent) => boolean) {
    return this.connection.call((client, signal) => {
      const stream = client.readAll({ fromPosition: from, maxCount, direction, ...this.connection.callOptions });
      return drain(stream, signal, ({ event }) => (event ? take(event) : true));
    });
  }

  private remember(after: bigint, scannedTo: Position): void {
    this.scanned.delete(after);
    this.scanned.set(after, scannedTo);
    if (this.scanned.size > PLACES_MAX) this.scanned.delete(this.scanned.keys().next().value!);
  }
}

function recordedOrUnreadable(event: ReadEvent): RecordedEvent | UnreadableEvent {
  try {
    return toRecordedEvent(event);
  } catch (error) {
    if (error instanceof UnreadableEvent) return error;
    throw error;
  }
}
