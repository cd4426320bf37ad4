import type { DueChange, DueRow, DueWork } from '#domain';
import type { Pool } from '../postgres/database.js';

type Row = { operation_id: string; provider: string };

const TAKE = `with clock as materialized (select onefold.now_ms() as now),
picked as (
  select due.operation_id, due.due_at_ms
  from unnest($1::text[], $2::integer[]) as room (provider, rows)
  cross join lateral (
    select w.operation_id, w.due_at_ms from onefold.due_work w
    where w.provider = room.provider and w.due_at_ms <= (select now from clock)
    order by w.due_at_ms limit room.rows for update skip locked
  ) due
),
taken as (
  update onefold.due_work w set due_at_ms = (select now from clock) + $3::bigint
  from picked where w.operation_id = picked.operation_id
  returning w.operation_id, w.provider, picked.due_at_ms
)
select operation_id, provider from taken order by due_at_ms`;

const TAKE_OTHERS = `with clock as materialized (select onefold.now_ms() as now),
picked as (
  select w.operation_id, w.due_at_ms from onefold.due_work w
  where w.provider <> all ($1::text[]) and w.due_at_ms <= (select now from clock)
  order by w.due_at_ms limit $2 for update skip locked
),
taken as (
  update onefold.due_work w set due_at_ms = (select now from clock) + $3::bigint
  from picked where w.operation_id = picked.operation_id
  returning w.operation_id, w.provider, picked.due_at_ms
)
select operation_id, provider from taken order by due_at_ms`;

/** Writers of many rows lock them in the order of their operation ids, so that two never wait for each other. */
const UPSERT = `insert into onefold.due_work (operation_id, provider, due_at_ms, revision)
select * from unnest($1::text[], $2::text[], $3::bigint[], $4::integer[]) as change (operation_id, provider, due_at_ms, revision)
order by operation_id
on conflict (operation_id) do update set due_at_ms = excluded.due_at_ms, revision = excluded.revision,
  provider = coalesce(nullif(excluded.provider, ''), onefold.due_work.provider)
where excluded.revision >= onefold.due_work.revision`;

const DELETE = `with done as materialized (
  select w.operation_id from unnest($1::text[], $2::integer[]) as done (operation_id, revision)
  join onefold.due_work w on w.operation_id = done.operation_id and w.revision <= done.revision
  order by w.operation_id for update of w
)
delete from onefold.due_work w using done where w.operation_id = done.operation_id`;

/** @param pool its commits need not wait for the disk: the table is rebuilt from the log behind its checkpoint */
export class PostgresDueWork implements DueWork {
  constructor(private readonly pool: Pool) {}

  async take(room: readonly { provider: string; rows: number }[], hideMs: number): Promise<readonly DueRow[]> {
    const values = [room.map(({ provider }) => provider), room.map(({ rows }) => rows), hideMs];
    const { rows } = await this.pool.query<Row>({ name: 'take-due-work', text: TAKE, values });
    return rows.map(toDueRow);
  }

  async takeOthers(providers: readonly string[], rows: number, hideMs: number): Promise<readonly DueRow[]> {
    const taken = await this.pool.query<Row>({ name: 'take-other-due-work', text: TAKE_OTHERS, values: [providers, rows, hideMs] });
    return taken.rows.map(toDueRow);
  }

  async set(changes: readonly DueChange[]): Promise<void> {
    const due = changes.filter(({ dueAtMs }) => dueAtMs !== null);
    const done = changes.filter(({ dueAtMs }) => dueAtMs === null);
    if (due.length > 0) {
      const values = [
        due.map(({ operationId }) => operationId),
        due.map(({ provider }) => provider),
        due.map(({ dueAtMs }) => dueAtMs),
        due.map(({ revision }) => revision),
      ];
      await this.pool.query({ name: 'set-due-work', text: UPSERT, values });
    }
    if (done.length > 0) {
      const values = [done.map(({ operationId }) => operationId), done.map(({ revision }) => revision)];
      await this.pool.query({ name: 'drop-due-work', text: DELETE, values });
    }
  }

  async countDue(): Promise<number> {
    const text = 'select count(*) as due from onefold.due_work where due_at_ms <= (select onefold.now_ms())';
    const { rows } = await this.pool.query<{ due: string }>({ name: 'count-due-work', text });
    return Number(rows[0]!.due);
  }
}

function toDueRow({ operation_id: operationId, provider }: Row): DueRow {
  return { operationId, provider };
}
