import { BACKWARDS, END, type Credentials } from '@eventstore/db-client';
import {
  LogOverloaded,
  LogUnavailable,
  UnreadableEvent,
  type AppendRequest,
  type AppendResult,
  type EventLog,
  type Hashing,
  type RecordedEvent,
} from '#domain';
import type { Logger } from '../../observability/logger.js';
import { AppendListeners } from '../append-listeners.js';
import { checkReadAll, checkReadStreams, encodeAppend, type StoredEvent } from '../encoding.js';
import { AllReader } from './all-reader.js';
import { Appender, type DataKeyStore } from './appender.js';
import { EventStoreDbConnection } from './connection.js';
import { drain } from './drain.js';
import { Followers } from './followers.js';
import { Slots } from './slots.js';
import { StreamReader } from './stream-reader.js';

export interface EventStoreDbOptions {
  /** `esdb://user:password@host:2113?tls=true`. The user must be allowed to read `$all`. */
  readonly url: string;
  readonly hashing: Hashing;
  readonly dataKeys: DataKeyStore;
  /** In place of those in `url`. */
  readonly credentials?: Credentials;
  readonly logger?: Logger;
  /** What the server is given for one call, in milliseconds; two seconds later nobody waits for it any more. */
  readonly deadlineMs?: number;
  /** How long an append of unknown result is repeated, in milliseconds. */
  readonly retryMs?: number;
}

const DEADLINE_MS = 5_000;
/** As with PostgreSQL: while a leader is elected a caller is held; longer than this it is told that nobody knows. */
const RETRY_MS = 10_000;
/** A server takes 100 calls of a connection at once; appends, reads and followers share them. */
const APPENDS_MAX = 48;
const READS_MAX = 40;
/** About two seconds of full load; whoever waits longer is better served by a refusal. */
const WAITING_MAX = 5_000;
/** A queue of the largest payloads would otherwise take more than a gigabyte. */
const WAITING_BYTES_MAX = 64_000_000;

/**
 * The event log in EventStoreDB or KurrentDB. Positions are the commit positions of `$all`: they grow and have holes.
 * A repetition of the very same request is told as `written` with what is stored where the server does not say that it is one.
 */
export class EventStoreDbEventLog implements EventLog {
  private readonly connection: EventStoreDbConnection;
  private readonly appender: Appender;
  private readonly all: AllReader;
  private readonly streams: StreamReader;
  private readonly followers: Followers;
  private readonly listeners = new AppendListeners();
  private readonly appends = new Slots('appends', { running: APPENDS_MAX, waiting: WAITING_MAX, waitingBytes: WAITING_BYTES_MAX });
  private readonly reads = new Slots('reads', { running: READS_MAX, waiting: WAITING_MAX });
  private closed = false;

  /** @throws RangeError for a connection string that can't be used */
  constructor(private readonly options: EventStoreDbOptions) {
    const { deadlineMs = DEADLINE_MS, retryMs = RETRY_MS, dataKeys, logger } = options;
    const onReplaced = () => this.followers.drop();
    this.connection = new EventStoreDbConnection({ ...options, deadlineMs, onReplaced });
    this.streams = new StreamReader(this.connection);
    this.all = new AllReader(this.connection);
    this.followers = new Followers(this.connection);
    this.appender = new Appender({ connection: this.connection, streams: this.streams, dataKeys, deadlineMs, retryMs, logger });
  }

  async append(request: AppendRequest): Promise<AppendResult> {
    if (this.closed) throw new LogUnavailable('The event log is closed.');
    const encoded = encodeAppend(this.options.hashing, request);
    const result = await this.appends.run(() => this.appender.append(request, encoded), sizeOf(encoded));
    if (result.outcome === 'written') this.listeners.tell(result.events);
    return result;
  }

  readStream(stream: string): Promise<readonly RecordedEvent[]> {
    return orUnavailable(
      'Reading a stream',
      this.reads.run(() => this.streams.readStream(stream)),
    );
  }

  async readStreams(streams: readonly string[]): Promise<ReadonlyMap<string, readonly RecordedEvent[]>> {
    checkReadStreams(streams);
    const found = new Map<string, readonly RecordedEvent[]>(streams.map((stream) => [stream, []]));
    const left = found.keys();
    const reader = async () => {
      for (const stream of left) found.set(stream, await this.streams.readStream(stream));
    };
    // Each reader waits for its turn among all reads of the process, so that many callers at once keep to the bound as well.
    const readers = Array.from({ length: Math.min(READS_MAX, found.size) }, () => this.reads.run(reader));
    await orUnavailable('Reading streams', Promise.all(readers));
    return found;
  }

  async readAll(after: bigint, limit: number): Promise<readonly RecordedEvent[]> {
    checkReadAll(after, limit);
    const read = () => this.reads.run(() => this.all.readAfter(after, limit));
    return orUnavailable('Reading the log', this.followers.readAfter(after, limit, read));
  }

  async head(): Promise<bigint> {
    return orUnavailable(
      'Reading the head of the log',
      this.reads.run(() => this.all.readHead()),
    );
  }

  onAppended(listener: (events: readonly RecordedEvent[]) => void): () => void {
    return this.listeners.add(listener);
  }

  /** Whether the leader answers. @throws LogUnavailable */
  async check(): Promise<void> {
    const { connection } = this;
    const read = connection.call((client, signal) => {
      const stream = client.readAll({ fromPosition: END, direction: BACKWARDS, maxCount: 1, ...connection.callOptions });
      return drain(stream, signal, () => true);
    });
    await orUnavailable('Asking EventStoreDB', read);
  }

  /** Waits for the appends under way, ends the subscriptions and gives the connection up. */
  async close(): Promise<void> {
    this.closed = true;
    await this.appends.idle();
    this.followers.close();
    await this.connection.close();
  }
}

/** Reads never guess: whatever keeps them from an answer is told as `LogUnavailable`, except what is wrong with their object or their number. */
async function orUnavailable<T>(what: string, read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof LogOverloaded || error instanceof UnreadableEvent) throw error;
    throw new LogUnavailable(`${what} failed.`, { cause: error });
  }
}

function sizeOf(events: readonly StoredEvent[]): number {
  return events.reduce((bytes, { data, metadata }) => bytes + data.length + metadata.length, 0);
}
