import type { AppendRequest, AppendResult, EventLog, Hashing, RecordedEvent } from '#domain';
import { orUnavailable, type DatabaseOptions, type Pool } from '../../postgres/database.js';
import { GatheringReader } from '../../postgres/gathering-reader.js';
import { AppendListeners } from '../append-listeners.js';
import { checkReadAll, checkReadStreams, decodeEvent, decodeUntilUnreadable } from '../encoding.js';
import { AppendBatcher } from './append-batcher.js';
import { AppendConnection } from './append-connection.js';
import { TailCache } from './tail-cache.js';

interface EventRow {
  stream: string;
  revision: number;
  position: string;
  id: string;
  type: string;
  data: string;
  metadata: string;
  chain: string;
}

const COLUMNS = `stream, revision, position, id, type, data, metadata, encode(chain, 'hex') as chain`;

/** A page of events with the largest payloads must not fill the memory of a reader; several readers page at once. */
const PAGE_BYTES_MAX = 16_000_000;

/** Cut by number and by size, but never before the first event: a reader always gets on. */
const READ_ALL = `select ${COLUMNS} from (
  select *, sum(pg_column_size(data)) over (order by position) - pg_column_size(data) as bytes_before
  from (select * from onefold.events where position > $1 order by position limit $2) page
) sized
where bytes_before < $3 order by position`;

/** The event log in PostgreSQL: see `migrations/0001_event_log.sql` for how positions come to be in commit order and without holes. */
export class PostgresEventLog implements EventLog {
  private readonly listeners = new AppendListeners();
  private readonly tail = new TailCache();
  private readonly batcher: AppendBatcher;
  private readonly streams = new GatheringReader<readonly RecordedEvent[]>((streams) => this.readStreams(streams), []);

  constructor(
    private readonly pool: Pool,
    options: DatabaseOptions & { readonly hashing: Hashing },
  ) {
    this.batcher = new AppendBatcher(new AppendConnection(options), options.hashing, (events, bytes) => {
      this.tail.add(events, bytes);
      this.listeners.tell(events);
    });
  }

  append(request: AppendRequest): Promise<AppendResult> {
    return this.batcher.append(request);
  }

  readStream(stream: string): Promise<readonly RecordedEvent[]> {
    return this.streams.read(stream);
  }

  async readStreams(streams: readonly string[]): Promise<ReadonlyMap<string, readonly RecordedEvent[]>> {
    checkReadStreams(streams);
    const text = `select ${COLUMNS} from onefold.events where stream = any($1) order by stream, revision`;
    const found = new Map<string, RecordedEvent[]>(streams.map((stream) => [stream, []]));
    for (const row of await this.query('Reading streams', { name: 'read-streams', text, values: [streams] })) {
      found.get(row.stream)!.push(decodeRow(row));
    }
    return found;
  }

  async readAll(after: bigint, limit: number): Promise<readonly RecordedEvent[]> {
    checkReadAll(after, limit);
    const cached = this.tail.readAfter(after, limit);
    if (cached) return cached;
    const values = [String(after), limit, PAGE_BYTES_MAX];
    return decodeUntilUnreadable(await this.query('Reading the log', { name: 'read-all', text: READ_ALL, values }), decodeRow);
  }

  async head(): Promise<bigint> {
    const text = 'select coalesce(max(position), 0) as head from onefold.events';
    const { rows } = await orUnavailable('Reading the head of the log', this.pool.query<{ head: string }>({ name: 'read-head', text }));
    return BigInt(rows[0]!.head);
  }

  onAppended(listener: (events: readonly RecordedEvent[]) => void): () => void {
    return this.listeners.add(listener);
  }

  /** Waits for the appends under way and closes the connection they use; the pool stays its owner's. */
  async close(): Promise<void> {
    await this.batcher.close();
  }

  private async query(what: string, query: { name: string; text: string; values: unknown[] }): Promise<EventRow[]> {
    return (await orUnavailable(what, this.pool.query<EventRow>(query))).rows;
  }
}

function decodeRow(row: EventRow): RecordedEvent {
  return decodeEvent({ ...row, position: BigInt(row.position) });
}
