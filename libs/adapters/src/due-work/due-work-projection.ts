import {
  dueAfter,
  LogUnavailable,
  streamOf,
  type DueChange,
  type DueWork,
  type EventLog,
  type FeedConsumer,
  type RecordedEvent,
} from '#domain';

/** Names its checkpoint. */
export const DUE_WORK = 'due-work';

/**
 * Keeps the due work in step with the log. Events of a batch are merged by operation first: one that began and ended within the batch
 * leaves no row at all.
 */
export class DueWorkProjection implements FeedConsumer {
  readonly name = DUE_WORK;

  /**
   * @param log to read the provider of an operation whose first event lies in an earlier batch
   * @param onDue told when something became due at once
   */
  constructor(
    private readonly dueWork: DueWork,
    private readonly log: Pick<EventLog, 'readStream'>,
    private readonly nowMs: () => number,
    private readonly onDue: () => void,
  ) {}

  async handle(events: readonly RecordedEvent[]): Promise<void> {
    const latest = new Map<string, { revision: number; dueAtMs: number | null; isNew: boolean; provider: string | null }>();
    for (const { event, stream, revision, metadata } of events) {
      const operationId = operationIdOf(stream);
      const known = latest.get(operationId);
      if (known && revision <= known.revision) continue;
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

  /** Makes an operation due now whatever is known of it: rows suggest, and its stream decides. A row of a newer event stays as it is. */
  async lookAt(operationId: string): Promise<void> {
    const provider = await this.readProvider(operationId);
    await this.dueWork.set([{ operationId, provider, revision: 0, dueAtMs: this.nowMs() }]);
    this.onDue();
  }

  /** An operation with due work always has its provider in its first event; it is read there when this batch does not hold it. */
  private nameProviders(changes: readonly DueChange[]): Promise<DueChange[]> {
    return Promise.all(
      changes.map(async (change) => {
        const isNamed = change.provider !== '' || change.dueAtMs === null;
        return isNamed ? change : { ...change, provider: await this.readProvider(change.operationId) };
      }),
    );
  }

  /** Empty where the stream can't be read: one broken operation must not hold up the feed for all others, and its look shows the fault. */
  private async readProvider(operationId: string): Promise<string> {
    try {
      const [first] = await this.log.readStream(streamOf(operationId));
      return first?.event.type === 'OperationPlanned' ? first.event.data.provider : '';
    } catch (error) {
      if (error instanceof LogUnavailable) throw error;
      return '';
    }
  }
}

function operationIdOf(stream: string): string {
  return stream.slice('operation-'.length);
}
