import type { PoolClient } from '../postgres/database.js';

/** A list that holds the live table is done in milliseconds, mostly; those that wait behind us are not to wait for longer. */
const LOCK_TIMEOUT_MS = 500;
const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK_DETECTED = '40P01';

/** An empty table like the live one, in place of what an interrupted rebuild has left. */
export async function makeNextView(client: PoolClient): Promise<void> {
  await dropNextView(client);
  // `like` copies columns, comments and indexes, but not the table's own parameters.
  const { rows } = await client.query<{ options: string[] | null }>(
    `select reloptions as options from pg_class where oid = 'onefold.operation_view'::regclass`,
  );
  const parameters = rows[0]!.options?.length ? ` with (${rows[0]!.options.join(', ')})` : '';
  await client.query(`create table onefold.operation_view_next (like onefold.operation_view including all)${parameters}`);
}

export async function dropNextView(client: PoolClient): Promise<void> {
  await client.query('drop table if exists onefold.operation_view_next');
}

/**
 * Exchanges the tables in one transaction, and moves the checkpoint with them.
 *
 * The lock on the live table waits for the projection's statement under way and holds up its next one, which then finds the new table under
 * the old name; so do lists. What the new table lacks is folded under that lock, so that it is never behind what the live one has shown.
 * @param finish folds the rest and returns the position reached
 * @returns false when the live table was not free in time; nothing has changed then
 */
export async function putNextViewInPlace(client: PoolClient, checkpoint: string, finish: () => Promise<bigint>): Promise<boolean> {
  try {
    // The new rows were written without waiting for the disk: this commit does, and takes all that was written before it along.
    await client.query(`begin; set local synchronous_commit = on; set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
    await client.query('lock table onefold.operation_view in access exclusive mode');
    const position = await finish();
    await client.query('drop table onefold.operation_view');
    await client.query('alter table onefold.operation_view_next rename to operation_view');
    await renameIndexes(client);
    await client.query(
      `insert into onefold.checkpoints as c (name, position) values ($1, $2)
       on conflict (name) do update set position = greatest(c.position, excluded.position)`,
      [checkpoint, String(position)],
    );
    await client.query('commit');
    return true;
  } catch (error) {
    await client.query('rollback');
    const { code } = error as { code?: string };
    if (code === LOCK_NOT_AVAILABLE || code === DEADLOCK_DETECTED) return false;
    throw error;
  }
}

/** The names that the migration gave them, so that the next rebuild and every later migration find what they expect. */
async function renameIndexes(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select indexrelid::regclass::text as name from pg_index where indrelid = 'onefold.operation_view'::regclass`,
  );
  for (const { name } of rows) {
    const own = name.replace(/^onefold\./, '');
    await client.query(`alter index onefold.${own} rename to ${own.replace('operation_view_next', 'operation_view')}`);
  }
}
