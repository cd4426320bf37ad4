import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from '#adapters/postgres/database.js';
import type { LabClient } from './lab-client.js';

/** Landings, look-ups and back-offs take a minute at most; the rest is for what has piled up while things were broken. */
export const SETTLE_MS_MAX = 600_000;
const LOOK_EVERY_MS = 1_000;

/**
 * Until nothing is under way any more: every operation has an outcome or waits for a person, relay and view have taken the whole log, and
 * nothing is to land at the provider.
 * @param startedAt by `performance.now()`: when the last fault was put right
 * @returns how long that took; null where it did not come in time
 */
export async function untilSettled(pool: Pool, lab: LabClient, startedAt: number, tell: (text: string) => void): Promise<number | null> {
  for (let looks = 0; performance.now() - startedAt < SETTLE_MS_MAX; looks++) {
    const open = await openWork(pool);
    const isSettled = open.operations === 0 && open.unpublished === 0 && open.unseen === 0;
    if (isSettled && (await lab.totals()).pending_landings === 0) return Math.round(performance.now() - startedAt);
    if (looks % 10 === 0) tell(`${open.operations} operations open, ${open.unpublished} events to publish, ${open.unseen} rows behind`);
    await delay(LOOK_EVERY_MS);
  }
  return null;
}

interface OpenWork {
  /** By the view. */
  readonly operations: number;
  /** Events behind the relay's mark. */
  readonly unpublished: number;
  /** Operations whose row is missing or behind their stream. */
  readonly unseen: number;
}

async function openWork(pool: Pool): Promise<OpenWork> {
  const { rows } = await pool.query<Record<keyof OpenWork, string>>(`
    with heads as (select substr(stream, length('operation-') + 1) as operation_id, max(revision) as revision from onefold.events group by stream)
    select
      (select count(*) from onefold.operation_view
        where status in ('planned', 'executing', 'failed_retryable') or (status = 'unknown' and position('"review":null' in state) > 0)) as operations,
      (select count(*) from onefold.events where position > (select position from onefold.checkpoints where name = 'relay')) as unpublished,
      (select count(*) from heads left join onefold.operation_view using (operation_id)
        where operation_view.revision is distinct from heads.revision) as unseen`);
  const { operations, unpublished, unseen } = rows[0]!;
  return { operations: Number(operations), unpublished: Number(unpublished), unseen: Number(unseen) };
}
