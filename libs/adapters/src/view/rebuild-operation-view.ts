import type { EventLog } from '#domain';
import type { Pool, PoolClient } from '../postgres/database.js';
import { OPERATION_VIEW, OperationProjection } from './operation-projection.js';
import { dropNextView, makeNextView, putNextViewInPlace } from './next-view.js';

export interface RebuildOptions {
  /** For the table being filled: its commits need not wait for the disk. At least two connections: one holds the locks. */
  readonly pool: Pool;
  readonly log: Pick<EventLog, 'readAll' | 'readStreams' | 'head'>;
  /** Told after each batch: the position reached, and where the log ended when the rebuild began. */
  readonly onProgress?: (position: bigint, head: bigint) => void;
  /** Ends the rebuild between two batches; the live view stays as it is. */
  readonly signal?: AbortSignal;
}

export interface RebuildResult {
  readonly events: number;
  /** Position up to which the new view is the fold of the log. */
  readonly position: bigint;
}

/** Another rebuild of this database is under way. */
export class RebuildUnderWay extends Error {
  override readonly name = 'RebuildUnderWay';
}

/** The log grew faster than it could be read, or readers kept the live table busy. The live view is as it was. */
export class RebuildOvertaken extends Error {
  override readonly name = 'RebuildOvertaken';
}

/** As a feed's batch: bounds memory and the statement that writes it. */
const BATCH_EVENTS = 2_000;
/** While the tables are being exchanged lists wait, so that only little may be left to fold then: some tens of milliseconds' worth. */
const LEFT_FOR_EXCHANGE_EVENTS = 2 * BATCH_EVENTS;
/** Each lock wait is short, so as not to hold up the lists that queue behind it; a reader ends within its statement timeout. */
const EXCHANGES_MAX = 10;
/** Any number no other program of this database is likely to lock by; held by the session of one rebuild. */
const REBUILD_LOCK = 7_239_015;

/**
 * Builds the status view anew from the first event, beside the live one, which goes on being read and written; then takes its place. It
 * reads the log and writes its table: nothing else is within its reach, so that it can't call a provider.
 *
 * A rebuild that was interrupted leaves a table behind that the next one removes before it begins again.
 *
 * @throws RebuildUnderWay, RebuildOvertaken, LogUnavailable, the signal's reason
 */
export async function rebuildOperationView(options: RebuildOptions): Promise<RebuildResult> {
  const client = await options.pool.connect();
  // A lost connection is met at its next statement; told as an event that nobody listens to, it would end the process.
  client.on('error', () => undefined);
  try {
    const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [REBUILD_LOCK]);
    if (!rows[0]!.locked) throw new RebuildUnderWay('Another rebuild of this view is under way; wait for it to end.');
    await makeNextView(client);
    try {
      return await fillAndExchange(client, options);
    } catch (error) {
      // The next rebuild would remove it too; until then it would take room for nothing. The first error is the one to report.
      await dropNextView(client).catch(() => undefined);
      throw error;
    }
  } finally {
    // Closing the session frees the lock, whatever state the connection is in.
    client.release(true);
  }
}

async function fillAndExchange(client: PoolClient, options: RebuildOptions): Promise<RebuildResult> {
  const filling = new Filling(options);
  const head = await options.log.head();
  while (filling.position < head) await filling.step(head);
  await client.query('analyze onefold.operation_view_next');
  for (let attempt = 1; attempt <= EXCHANGES_MAX; attempt++) {
    await filling.catchUp();
    const exchanged = await putNextViewInPlace(client, OPERATION_VIEW, () => filling.finish());
    if (exchanged) return { events: filling.events, position: filling.position };
  }
  throw new RebuildOvertaken(
    `The new view could not take its place in ${EXCHANGES_MAX} tries: the live one was never free. Repeat when there is less to do.`,
  );
}

/** The table on its way from the first event to the last. */
class Filling {
  position = 0n;
  events = 0;
  private readonly projection: OperationProjection;

  constructor(private readonly options: RebuildOptions) {
    this.projection = new OperationProjection(options.pool, options.log, 'operation_view_next');
  }

  /** One batch; returns how many events it had. */
  async step(head: bigint): Promise<number> {
    const { log, onProgress, signal } = this.options;
    signal?.throwIfAborted();
    const events = await log.readAll(this.position, BATCH_EVENTS);
    if (events.length === 0) return 0;
    await this.projection.handle(events);
    this.position = events.at(-1)!.position;
    this.events += events.length;
    onProgress?.(this.position, head);
    return events.length;
  }

  /** To within little of the end. What was appended during one round is the next one's work, and must become less. */
  async catchUp(): Promise<void> {
    for (let left = Infinity; ;) {
      const head = await this.options.log.head();
      const behind = Number(head - this.position);
      if (behind <= LEFT_FOR_EXCHANGE_EVENTS) return;
      if (behind >= left) throw new RebuildOvertaken('The log grows faster than the view can be rebuilt; repeat when there is less to do.');
      left = behind;
      while (this.position < head) await this.step(head);
    }
  }

  /** The rest, while nobody writes the live table: it can't be further than the log is now. */
  async finish(): Promise<bigint> {
    const head = await this.options.log.head();
    while (this.position < head) await this.step(head);
    return this.position;
  }
}
