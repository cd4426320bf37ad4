import { nodeHashing } from '#adapters/crypto/hashing.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import { openPool } from '#adapters/postgres/database.js';
import type { KnownOperation, RecordedEvent } from '#domain';
import type { ViewFact } from '../checker/facts.js';

/** The most that the log gives in one page. */
const PAGE_EVENTS = 1_000;
const PAGE_ROWS = 5_000;

/** The whole log in the order of its positions, read by this process, which has taken no part. The product may be running or not. */
export async function readLog(url: string): Promise<RecordedEvent[]> {
  const pool = openPool({ url, poolSize: 1 });
  const log = new PostgresEventLog(pool, { url, hashing: nodeHashing });
  try {
    const events: RecordedEvent[] = [];
    for (;;) {
      const page = await log.readAll(events.at(-1)?.position ?? 0n, PAGE_EVENTS);
      if (page.length === 0) return events;
      events.push(...page);
    }
  } finally {
    await log.close();
    await pool.end();
  }
}

/** Every row of the status view. */
export async function readView(url: string): Promise<ViewFact[]> {
  const pool = openPool({ url, poolSize: 1 });
  try {
    const facts: ViewFact[] = [];
    for (;;) {
      const { rows } = await pool.query<{ operation_id: string; revision: number; state: string }>(
        'select operation_id, revision, state from onefold.operation_view where operation_id > $1 order by operation_id limit $2',
        [facts.at(-1)?.operationId ?? '', PAGE_ROWS],
      );
      for (const { operation_id: operationId, revision, state } of rows) {
        facts.push({ operationId, revision, state: JSON.parse(state) as KnownOperation });
      }
      if (rows.length < PAGE_ROWS) return facts;
    }
  } finally {
    await pool.end();
  }
}
