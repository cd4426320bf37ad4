import { randomUUID } from 'node:crypto';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import type { PostgresDataKeys } from '#adapters/event-store/postgres/postgres-data-keys.js';
import type { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import type { DirectFeed } from '#adapters/feed/direct-feed.js';
import type { Pool } from '#adapters/postgres/database.js';
import type { PostgresClock } from '#adapters/postgres/postgres-clock.js';
import type { Dispatcher } from '#apps/dispatcher/src/dispatcher.js';
import { handleCommand, streamOf, type DueWork, type EventLog, type OperationCommand, type ProviderDefinition } from '#domain';

export interface NodeOptions {
  readonly worker?: string;
  /** Per provider; what is left out has its default. */
  readonly definitions?: Readonly<Record<string, Partial<ProviderDefinition>>>;
  /** Providers that this process's catalogue lacks. */
  readonly without?: readonly string[];
  readonly wrapLog?: (log: EventLog) => EventLog;
  readonly wrapDueWork?: (dueWork: DueWork) => DueWork;
  readonly random?: () => number;
}

export interface Fault {
  readonly what: string;
  readonly operationId: string | null;
  readonly error: Error;
}

/** One dispatcher process: its own connections, clock, feed and dispatcher over the shared database and the shared providers. */
export class DispatcherNode {
  closed = false;

  constructor(
    private readonly onClosed: (node: DispatcherNode) => void,
    readonly pool: Pool,
    readonly log: PostgresEventLog,
    readonly clock: PostgresClock,
    readonly dataKeys: PostgresDataKeys,
    readonly dueWork: DueWork,
    readonly feed: DirectFeed,
    readonly dispatcher: Dispatcher,
    readonly faults: readonly Fault[],
  ) {}

  start(): this {
    this.feed.start();
    this.dispatcher.start();
    return this;
  }

  /** Reads the feed to its end, then one round over the due work. @returns rows taken */
  async round(): Promise<number> {
    while ((await this.feed.runOnce()) > 0);
    return this.dispatcher.runOnce();
  }

  /** Rounds until `rows` were taken: what is due now by the clock of this process is due some milliseconds later by the database's. */
  async work(rows = 1): Promise<void> {
    for (let taken = 0; taken < rows;) taken += await this.round();
  }

  command(operationId: string, ...commands: [OperationCommand, ...OperationCommand[]]) {
    return handleCommand(
      { log: this.log, clock: this.clock, hashing: nodeHashing },
      {
        stream: streamOf(operationId),
        commands,
        commandId: randomUUID(),
        tenant: null,
        actor: 'test',
        correlation: 'test',
        causation: null,
        traceparent: null,
      },
    );
  }

  /** As a graceful shutdown does it. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.dispatcher.stop();
    await this.feed.stop();
    await this.kill();
  }

  /** The connections go; nothing is finished first. */
  async kill(): Promise<void> {
    this.closed = true;
    this.clock.stop();
    await this.log.close();
    await this.pool.end();
    this.onClosed(this);
  }
}
