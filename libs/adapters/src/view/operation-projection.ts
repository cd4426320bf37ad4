import { streamOf, type EventLog, type FeedConsumer, type RecordedEvent } from '#domain';
import type { Pool } from '../postgres/database.js';
import { foldOnto, NOTHING_YET, type ProjectedOperation } from './projected-operation.js';
import { RecentOperations } from './recent-operations.js';
import { ViewTable, type ViewRow, type ViewTableName } from './view-table.js';

/** Names the projection's checkpoint. */
export const OPERATION_VIEW = 'operation-view';

/** Streams read at once after a gap: each may be a few dozen events, and gaps are rare. */
const STREAMS_PER_READ = 100;
const STREAM_PREFIX = streamOf('');

/** The feed names an event that the log does not hold (yet): the log it was read from is another one, or a restored older one. */
export class EventMissingFromLog extends Error {
  override readonly name = 'EventMissingFromLog';
}

/**
 * Keeps the status view equal to the fold of the log. A batch is merged by operation first, and written as one statement.
 *
 * Any batch may come again, whole or in part, also to several of these at once: a row moves to a higher revision or stays as it is.
 * Nothing but the log is read, and nothing but the view is written.
 */
export class OperationProjection implements FeedConsumer {
  readonly name = OPERATION_VIEW;
  private readonly table: ViewTable;
  private readonly recent = new RecentOperations();

  /**
   * @param pool with a feed whose checkpoint is in the same database, its commits need not wait for the disk: the checkpoint is written after
   * the rows, and the write-ahead log keeps that order, so that a crash never leaves a checkpoint ahead of its rows. A feed that keeps its
   * position elsewhere (Kafka offsets) needs a pool whose commits do wait
   */
  constructor(
    pool: Pool,
    private readonly log: Pick<EventLog, 'readStreams'>,
    table: ViewTableName = 'operation_view',
  ) {
    this.table = new ViewTable(pool, table);
  }

  /**
   * @param events of one batch of a feed: up to a few thousand, since they are one statement
   * @throws LogUnavailable, EventMissingFromLog, or what the database says; the batch is then to be handed over again
   */
  async handle(events: readonly RecordedEvent[]): Promise<void> {
    const batch = byOperation(events);
    try {
      const before = await this.known(batch);
      const after = new Map<string, ProjectedOperation>();
      const gaps: string[] = [];
      for (const [operationId, own] of batch) {
        const known = before.get(operationId) ?? NOTHING_YET;
        const folded = foldOnto(known, own);
        if (folded === null) gaps.push(operationId);
        else if (folded !== known) after.set(operationId, folded);
      }
      for (const [operationId, folded] of await this.foldFromLog(gaps, batch)) after.set(operationId, folded);
      await this.table.write([...after.values()].filter(isRow));
      for (const [operationId, folded] of after) this.recent.remember(operationId, folded);
    } catch (error) {
      // After a broken connection rows that were written may be gone; from here on the table tells what there is.
      this.recent.forgetAll();
      throw error;
    }
  }

  /** What is known of the operations that do not begin within the batch. */
  private async known(batch: ReadonlyMap<string, readonly RecordedEvent[]>): Promise<Map<string, ProjectedOperation>> {
    const known = new Map<string, ProjectedOperation>();
    const stored: string[] = [];
    for (const [operationId, [first]] of batch) {
      const recent = this.recent.get(operationId);
      if (recent) known.set(operationId, recent);
      else if (first!.revision > 0) stored.push(operationId);
    }
    if (stored.length === 0) return known;
    for (const [operationId, row] of await this.table.load(stored)) known.set(operationId, row);
    return known;
  }

  /** Up to the last revision that the batch knows of and no further: the rest is still to come. */
  private async foldFromLog(
    operationIds: readonly string[],
    batch: ReadonlyMap<string, readonly RecordedEvent[]>,
  ): Promise<Map<string, ProjectedOperation>> {
    const folded = new Map<string, ProjectedOperation>();
    for (let from = 0; from < operationIds.length; from += STREAMS_PER_READ) {
      const some = operationIds.slice(from, from + STREAMS_PER_READ);
      const streams = await this.log.readStreams(some.map(streamOf));
      for (const operationId of some) {
        const last = Math.max(...batch.get(operationId)!.map(({ revision }) => revision));
        const events = (streams.get(streamOf(operationId)) ?? []).filter(({ revision }) => revision <= last);
        const operation = foldOnto(NOTHING_YET, events);
        if (operation?.revision !== last) {
          throw new EventMissingFromLog(`The feed has revision ${last} of ${operationId}, and the log does not hold the events up to it.`);
        }
        folded.set(operationId, operation);
      }
    }
    return folded;
  }
}

function byOperation(events: readonly RecordedEvent[]): Map<string, RecordedEvent[]> {
  const batch = new Map<string, RecordedEvent[]>();
  for (const event of events) {
    const operationId = event.stream.slice(STREAM_PREFIX.length);
    const own = batch.get(operationId);
    if (own) own.push(event);
    else batch.set(operationId, [event]);
  }
  return batch;
}

/** A stream that does not begin as an operation has no row. */
function isRow(operation: ProjectedOperation): operation is ViewRow {
  return operation.state.status !== 'absent';
}
