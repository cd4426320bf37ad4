import type { Pool } from '#adapters/postgres/database.js';
import type { DueChange, DueRow, DueWork, EventLog, KnownOperation, RecordedEvent } from '#domain';
import type { ViewFact } from '../checker/check-invariants.js';

/** The database's clock: the truth, stepped by whoever operates it. */
export class StoreClock {
  offsetMs = 0;

  constructor(private readonly trueMs: () => number) {}

  nowMs(): number {
    return Math.floor(this.trueMs() + this.offsetMs);
  }
}

/** The due work in memory, statement for statement as PostgresDueWork has it. */
export class MemoryDueWork implements DueWork {
  private readonly rows = new Map<string, { provider: string; revision: number; dueAtMs: number }>();
  onSet: () => void = () => undefined;

  constructor(private readonly nowMs: () => number) {}

  async take(room: readonly { readonly provider: string; readonly rows: number }[], hideMs: number): Promise<readonly DueRow[]> {
    return room.flatMap(({ provider, rows }) => this.pick((of) => of === provider, rows, hideMs));
  }

  async takeOthers(providers: readonly string[], rows: number, hideMs: number): Promise<readonly DueRow[]> {
    return this.pick((provider) => !providers.includes(provider), rows, hideMs);
  }

  async set(changes: readonly DueChange[]): Promise<void> {
    for (const { operationId, provider, revision, dueAtMs } of changes) {
      const row = this.rows.get(operationId);
      if (row && revision < row.revision) continue;
      if (dueAtMs !== null) this.rows.set(operationId, { provider: provider || (row?.provider ?? ''), revision, dueAtMs });
      else this.rows.delete(operationId);
    }
    this.onSet();
  }

  async countDue(): Promise<number> {
    const now = this.nowMs();
    return [...this.rows.values()].filter(({ dueAtMs }) => dueAtMs <= now).length;
  }

  /** When the next row is due; null when there is none. */
  nextDueAtMs(): number | null {
    let next: number | null = null;
    for (const { dueAtMs } of this.rows.values()) if (next === null || dueAtMs < next) next = dueAtMs;
    return next;
  }

  private pick(isWanted: (provider: string) => boolean, rows: number, hideMs: number): DueRow[] {
    const now = this.nowMs();
    const due = [...this.rows].filter(([, row]) => isWanted(row.provider) && row.dueAtMs <= now);
    const picked = due.sort(([, one], [, other]) => one.dueAtMs - other.dueAtMs).slice(0, rows);
    return picked.map(([operationId, row]) => {
      row.dueAtMs = now + hideMs;
      return { operationId, provider: row.provider };
    });
  }
}

/** The log as every process sees it. An event may become visible to readers of the whole log later than others behind it. */
export class VisibleLog {
  private readonly visibleAtMs = new Map<bigint, number>();

  constructor(
    readonly inner: EventLog,
    private readonly trueMs: () => number,
  ) {}

  hide(events: readonly RecordedEvent[], forMs: number): void {
    for (const { position } of events) this.visibleAtMs.set(position, this.trueMs() + forMs);
  }

  isVisible = ({ position }: RecordedEvent): boolean => (this.visibleAtMs.get(position) ?? 0) <= this.trueMs();
}

/** Which of the events behind a cursor a reader may be handed. */
export type Tail = (events: readonly RecordedEvent[], isVisible: (event: RecordedEvent) => boolean) => readonly RecordedEvent[];

/** No further than to the first event that is not to be seen yet. */
export const honestTail: Tail = (events, isVisible) => {
  const hidden = events.findIndex((event) => !isVisible(event));
  return hidden < 0 ? events : events.slice(0, hidden);
};

interface ViewRow {
  revision: number;
  position: string;
  state: string;
}

/** The view's table, as far as the projection's two statements go. */
export class MemoryViewTable {
  private readonly rows = new Map<string, ViewRow>();

  query = ({ name, values }: { name: string; values: readonly unknown[] }): { rows: unknown[] } => {
    if (name === 'load-operation_view') return { rows: this.load(textsOf(values[0] as Buffer)) };
    if (name === 'write-operation_view') return this.write(values);
    throw new Error(`The simulated view has no statement ${name}.`);
  };

  facts(): ViewFact[] {
    return [...this.rows].map(([operationId, { revision, state }]) => ({
      operationId,
      revision,
      state: JSON.parse(state) as KnownOperation,
    }));
  }

  protected isNewer(revision: number, stored: number): boolean {
    return revision > stored;
  }

  private load(operationIds: readonly string[]): unknown[] {
    return operationIds.flatMap((operation_id) => {
      const row = this.rows.get(operation_id);
      return row ? [{ operation_id, ...row }] : [];
    });
  }

  private write(values: readonly unknown[]): { rows: unknown[] } {
    const states = textsOf(values[9] as Buffer);
    textsOf(values[0] as Buffer).forEach((operationId, index) => {
      const row = { revision: (values[2] as number[])[index]!, position: (values[3] as string[])[index]!, state: states[index]! };
      if (this.isNewer(row.revision, this.rows.get(operationId)?.revision ?? -1)) this.rows.set(operationId, row);
    });
    return { rows: [] };
  }
}

/** The pool as the projection uses it. */
export function poolOver(query: (statement: { name: string; values: readonly unknown[] }) => Promise<unknown>): Pool {
  return { query } as unknown as Pool;
}

const HEADER_BYTES = 20;

/** Reads a `text[]` in PostgreSQL's binary form. */
function textsOf(buffer: Buffer): string[] {
  const texts: string[] = [];
  for (let offset = HEADER_BYTES; offset < buffer.length;) {
    const length = buffer.readInt32BE(offset);
    offset += 4;
    texts.push(buffer.toString('utf8', offset, offset + length));
    offset += length;
  }
  return texts;
}
