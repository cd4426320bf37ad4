import type { KnownOperation } from '#domain';
import type { Pool } from '../postgres/database.js';

/** The planner uses the index of those in doubt, as its condition is this one. */
const OLDEST = `select state, onefold.now_ms() as now from onefold.operation_view where status = 'unknown' order by position limit 1`;

/**
 * Age of the oldest operation whose outcome is unknown, from when it was planned, by the clock of the database; 0 where there is none. Every
 * look-up moves what an operation was last touched by, so that only this shows a doubt that nobody ends.
 */
export async function oldestUnknownAgeMs(pool: Pick<Pool, 'query'>): Promise<number> {
  const { rows } = await pool.query<{ state: string; now: string }>({ name: 'oldest-unknown', text: OLDEST });
  const [oldest] = rows;
  if (!oldest) return 0;
  const { facts } = JSON.parse(oldest.state) as KnownOperation;
  return Math.max(0, Number(oldest.now) - facts.createdAtMs);
}
