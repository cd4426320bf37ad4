import type { RecordedEvent } from '#domain';

/** Enough for several seconds of full load between two reads of a local reader, in the order of ten megabytes. */
const EVENTS_MAX = 8_192;
/** Large payloads must not grow it beyond what a small server has to spare; its readers then fetch some of them again. */
const BYTES_MAX = 32_000_000;

/**
 * The newest events that this process appended itself, so that its own readers of the log need not fetch them again.
 * Positions have no holes, so a run of cached events that starts right behind a reader's position is exactly what the log holds there:
 * events of other writers break the run, and the reader asks the database.
 */
export class TailCache {
  /** Two halves: when the newer one is full the older one is dropped as a whole, so that no event is ever moved. */
  private older: RecordedEvent[] = [];
  private newer: RecordedEvent[] = [];
  private newerBytes = 0;

  /** @param events appended in one go, at least one; @param bytes what their texts take */
  add(events: readonly RecordedEvent[], bytes: number): void {
    const last = this.newer.at(-1) ?? this.older.at(-1);
    if (last && events[0]!.position !== last.position + 1n) {
      this.turn();
      this.older = [];
    } else if (this.newer.length + events.length > EVENTS_MAX / 2 || this.newerBytes + bytes > BYTES_MAX / 2) {
      this.turn();
    }
    this.newer.push(...events);
    this.newerBytes += bytes;
  }

  /** Up to `limit` events right behind `after`; null when the cache does not hold the first of them. */
  readAfter(after: bigint, limit: number): readonly RecordedEvent[] | null {
    const first = this.older[0] ?? this.newer[0];
    if (!first) return null;
    const index = Number(after + 1n - first.position);
    if (index < 0 || index >= this.older.length + this.newer.length) return null;
    const inNewer = index - this.older.length;
    const found = this.older.slice(index, index + limit);
    return found.concat(this.newer.slice(Math.max(0, inNewer), Math.max(0, inNewer + limit)));
  }

  private turn(): void {
    this.older = this.newer;
    this.newer = [];
    this.newerBytes = 0;
  }
}
