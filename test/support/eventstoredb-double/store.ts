/** An event as the double holds it. `position` is that of its record in the log, in bytes, so that it has holes. */
export interface DoubleRecord {
  readonly position: bigint;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Buffer;
  readonly metadata: Buffer;
  readonly createdMs: number;
}

export type ProposedEvent = Pick<DoubleRecord, 'id' | 'type' | 'contentType' | 'data' | 'metadata'>;
export type Expected = 'any' | 'stream_exists' | 'no_stream' | number;

export type StoreAnswer =
  | { readonly outcome: 'success'; readonly revision: number; readonly position: bigint; readonly written: boolean }
  | { readonly outcome: 'wrong_expected_version'; readonly current: number | null };

interface Stream {
  records: DoubleRecord[];
  /** Soft-deleted: what stands before this revision is not there for readers. */
  deletedBefore: number;
}

/** What a record takes besides its contents; the exact number is nobody's business. */
const RECORD_OVERHEAD = 141;

/** The in-memory store behind the double: appends are idempotent exactly as the server's are (`IndexWriter.CheckCommit`). */
export class DoubleStore {
  readonly records: DoubleRecord[] = [];
  private readonly streams = new Map<string, Stream>();
  /** Ids the server happens to remember; only they make `any` and `stream_exists` idempotent. */
  private recent = new Map<string, DoubleRecord>();
  /** A fresh server's log begins with records of its own. */
  private end = 1_842n;

  append(name: string, expected: Expected, events: readonly ProposedEvent[]): StoreAnswer {
    const stream = this.streams.get(name) ?? { records: [], deletedBefore: 0 };
    const current = stream.records.length - 1;
    const isDeleted = stream.deletedBefore > current && current >= 0;
    const wrong = { outcome: 'wrong_expected_version', current: current < 0 ? null : current } as const;
    if (expected === 'any' || expected === 'stream_exists') {
      const known = this.allRecent(name, events);
      if (known) return { outcome: 'success', revision: known.revision, position: known.position, written: false };
      if (expected === 'stream_exists' && (current < 0 || isDeleted)) return wrong;
      return this.write(name, stream, events);
    }
    const at = expected === 'no_stream' ? -1 : expected;
    if (at > current) return wrong;
    if (at === current) return this.write(name, stream, events);
    const stored = events.map((_, index) => stream.records[at + 1 + index]);
    if (events.length > 0 && events.every(({ id }, index) => stored[index]?.id === id)) {
      const last = stored.at(-1)!;
      return { outcome: 'success', revision: last.revision, position: last.position, written: false };
    }
    if (expected === 'no_stream' && isDeleted && stored[0]?.id !== events[0]?.id) return this.write(name, stream, events);
    return wrong;
  }

  /** Visible records of a stream; null where there is no stream for a reader. */
  stream(name: string): readonly DoubleRecord[] | null {
    const stream = this.streams.get(name);
    const visible = stream?.records.slice(stream.deletedBefore) ?? [];
    return visible.length > 0 ? visible : null;
  }

  softDelete(name: string): void {
    const stream = this.streams.get(name);
    if (stream) stream.deletedBefore = stream.records.length;
  }

  /** What a restart, a change of leader or an eviction does to the memory of recent ids. */
  forgetRecentIds(): void {
    this.recent = new Map();
  }

  /** Index of the first record at or behind `position`. */
  indexAt(position: bigint): number {
    let [low, high] = [0, this.records.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.records[middle]!.position < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether a read may begin there: at a record or behind the last one, never inside of one. */
  isReadable(position: bigint): boolean {
    return position >= this.end || this.records[this.indexAt(position)]?.position === position;
  }

  private write(name: string, stream: Stream, events: readonly ProposedEvent[]): StoreAnswer {
    this.streams.set(name, stream);
    for (const event of events) {
      const record = { ...event, stream: name, revision: stream.records.length, position: this.end, createdMs: Date.now() };
      stream.records.push(record);
      this.records.push(record);
      this.recent.set(event.id, record);
      this.end += BigInt(RECORD_OVERHEAD + 2 * name.length + event.data.length + event.metadata.length);
    }
    const last = stream.records.at(-1)!;
    return { outcome: 'success', revision: last.revision, position: last.position, written: true };
  }

  private allRecent(name: string, events: readonly ProposedEvent[]): DoubleRecord | null {
    const known = events.map(({ id }) => this.recent.get(id)).filter((record) => record?.stream === name);
    return known.length === events.length ? (known.at(-1) ?? null) : null;
  }
}
