import { PassThrough } from 'node:stream';
import { EventStoreDBClient, isCommandError, ErrorType, type Credentials } from '@eventstore/db-client';
import { LogUnavailable } from '#domain';
import type { Logger } from '../../observability/logger.js';
import { connectionSettings } from './connection-string.js';

export interface ConnectionOptions {
  /** `esdb://user:password@host:2113?tls=true`; nodePreference=leader and keep-alives of 10 s are added unless given. */
  readonly url: string;
  /** In place of those in `url`. */
  readonly credentials?: Credentials;
  /** What the server is given for one call, in milliseconds. */
  readonly deadlineMs: number;
  readonly logger?: Logger;
  /** The client was replaced: whatever still hangs on the old one is about to end. */
  readonly onReplaced?: () => void;
}

/** Said to each call. Only the leader knows every append that was answered. */
export interface CallOptions {
  readonly credentials: Credentials;
  readonly requiresLeader: true;
}

/** The server may keep its deadline and the answer still get lost; beyond this nobody waits. */
const BEYOND_DEADLINE_MS = 2_000;
/** Time-outs in a row after which a client is not believed to recover: a dead channel is not reset by a passed deadline. */
const TIMEOUTS_MAX = 3;

/** Nothing was heard in time; whether the server has done what it was asked is not known. */
export class CallTimedOut extends Error {
  override readonly name = 'CallTimedOut';
}

/** The one client of this process, replaced when it is stuck. Each call gets an own time-out, since the client has none that holds. */
export class EventStoreDbConnection {
  private readonly url: string;
  private client: EventStoreDBClient;
  private timeouts = 0;
  private closed = false;
  private readonly retiring = new Set<() => Promise<void>>();
  readonly callOptions: CallOptions;

  constructor(private readonly options: ConnectionOptions) {
    const { url, credentials } = connectionSettings(options.url, options.credentials);
    this.url = url;
    // Credentials make the client take the classic append, which keeps its deadline and shares no state with other appends.
    this.callOptions = { credentials, requiresLeader: true };
    this.client = connect(url);
  }

  get current(): EventStoreDBClient {
    return this.client;
  }

  /**
   * Runs one call on the client of the moment. `signal` is raised when the call is given up.
   * @throws CallTimedOut, or what the call threw
   */
  async call<T>(work: (client: EventStoreDBClient, signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.closed) throw new LogUnavailable('The event log is closed.');
    const { client } = this;
    const given = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new CallTimedOut('EventStoreDB did not answer in time.'));
        given.abort();
      }, this.options.deadlineMs + BEYOND_DEADLINE_MS);
    });
    try {
      const result = await Promise.race([work(client, given.signal), timeout]);
      // Closing cancels calls, and to the client a cancelled read looks like a finished one.
      if (this.closed) throw new LogUnavailable('The event log is closed.');
      if (client === this.client) this.timeouts = 0;
      return result;
    } catch (error) {
      this.failed(client, error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Tells of a failure of `client`, so that a stuck one is replaced. */
  failed(client: EventStoreDBClient, error: unknown): void {
    if (client !== this.client || this.closed) return;
    this.timeouts = isTimeout(error) ? this.timeouts + 1 : 0;
    if (this.timeouts >= TIMEOUTS_MAX || isFailedDiscovery(error)) this.replace(error);
  }

  /** Calls that are still under way fail. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...[...this.retiring].map((retire) => retire()), release(this.client)]);
  }

  private replace(cause: unknown): void {
    const old = this.client;
    this.client = connect(this.url);
    this.timeouts = 0;
    this.options.logger?.warn({ err: cause }, 'EventStoreDB client replaced');
    this.options.onReplaced?.();
    // Releasing cancels calls, and a cancelled read looks like a finished one: those under way end by their own time-outs first.
    const retire = async () => {
      clearTimeout(timer);
      this.retiring.delete(retire);
      await release(old);
    };
    const timer = setTimeout(() => void retire(), this.options.deadlineMs + 2 * BEYOND_DEADLINE_MS).unref();
    this.retiring.add(retire);
  }
}

/** A client that can't reach its cluster keeps some of that failure for ever. */
function isFailedDiscovery(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Failed to discover');
}

function isTimeout(error: unknown): boolean {
  if (error instanceof CallTimedOut) return true;
  return error instanceof Error && isCommandError(error) && [ErrorType.DEADLINE_EXCEEDED, ErrorType.TIMEOUT].includes(error.type);
}

/** What the client keeps to itself and is needed here: see `connect` and `release`. */
interface Internals {
  execute: (service: unknown, name: string, action: (grpc: object) => Promise<unknown>) => Promise<unknown>;
  getChannel: () => Promise<{ close(): void }>;
}

type AppendCall = (...given: unknown[]) => unknown;

function connect(url: string): EventStoreDBClient {
  const client = EventStoreDBClient.connectionString(url);
  const internals = client as unknown as Internals;
  const { execute } = internals;
  internals.execute = (service, name, action) => execute(service, name, (grpc) => action(withoutThrowingAppend(grpc)));
  return client;
}

/**
 * In 6.2.1 an append that starts on a channel another call has just shut throws inside an async promise executor: its promise never
 * settles, and the lost rejection ends the process. The throw becomes an answer here.
 */
function withoutThrowingAppend(grpc: object): object {
  const append: AppendCall = (...given) => {
    try {
      return (grpc as { append: AppendCall }).append(...given);
    } catch (error) {
      (given.at(-1) as (error: unknown) => void)(error);
      return new PassThrough({ objectMode: true }).resume();
    }
  };
  return new Proxy(grpc, { get: (target, key) => (key === 'append' ? append : Reflect.get(target, key, target)) });
}

/** `dispose` cancels streams and leaves the channel open. */
async function release(client: EventStoreDBClient): Promise<void> {
  await client.dispose();
  try {
    (await (client as unknown as Internals).getChannel()).close();
  } catch {
    // There is no channel where none could be made.
  }
}
