import { dueAfter, type DueChange, type DueWork, type FeedConsumer, type RecordedEvent } from '#domain';
import type { Pool } from '../postgres/database.js';

/**
 * Keeps the due work in step with the log. Events of a batch are merged by operation first: one that began and ended within the batch
 * leaves no row at all.
 */
export class DueWorkProjection implements FeedConsumer {
  readonly name = 'due-work';

  /**
   * @param pool to look up the provider of an operation whose first event lies in an earlier batch and whose row is gone
   * @param onDue told when something became due at once
   */
  constructor(
    private readonly dueWork: DueWork,
    private readonly pool: Pool,
    private readonly nowMs: () => number,
    private readonly onDue: () => void,
  ) {}

  async handle(events: readonly RecordedEvent[]): Promise<void> {
    const latest = new Map<string, { revision: number; dueAtMs: number | null; isNew: boolean; provider: string | null }>();
    for (const { event, stream, revision, metadata } of events) {
      const operationId = operationIdOf(stream);
      const known = latest.get(operationId);
      const isNew = event.type === 'OperationPlanned' || (known?.isNew ?? false);
      const provider = event.type === 'OperationPlanned' ? event.data.provider : (known?.provider ?? null);
      const due = dueAfter(event, Date.parse(metadata.at));
      // An unreadable time must not hold up the feed for all others: the operation is looked at now, and the look shows what is wrong.
      const readable = Number.isNaN(due) ? this.nowMs() : due;
      const dueAtMs = readable === 'unchanged' ? (known?.dueAtMs ?? null) : readable;
      if (due === 'unchanged' && !known) continue;
      latest.set(operationId, { revision, dueAtMs, isNew, provider });
    }
    const changes: DueChange[] = [];
    for (const [operationId, { revision, dueAtMs, isNew, provider }] of latest) {
      if (isNew && dueAtMs === null) continue;
      changes.push({ operationId, provider: provider ?? '', revision, dueAtMs });
    }
    const named = await this.nameProviders(changes);
    await this.dueWork.set(named);
    if (named.some(({ dueAtMs }) => dueAtMs !== null && dueAtMs <= this.nowMs())) this.onDue();
  }

  /** An operation with due work always has its provider in its first event; it is read there when this batch does not hold it. */
  private async nameProviders(changes: readonly DueChange[]): Promise<DueChange[]> {
    const unnamed = changes.filter(({ provider, dueAtMs }) => provider === '' && dueAtMs !== null);
    if (unnamed.length === 0) return [...changes];
    const { rows } = await this.pool.query<{ stream: string; provider: string }>({
      name: 'providers-of-streams',
      text: `select stream, (data::json) ->> 'provider' as provider from onefold.events where stream = any($1) and revision = 0`,
      values: [unnamed.map(({ operationId }) => `operation-${operationId}`)],
    });
    const providers = new Map(rows.map(({ stream, provider }) => [operationIdOf(stream), provider]));
    return changes.map((change) => (change.provider === '' ? { ...change, provider: providers.get(change.operationId) ?? '' } : change));
  }
}

function operationIdOf(stream: string): string {
  return stream.slice('operation-'.length);
}
