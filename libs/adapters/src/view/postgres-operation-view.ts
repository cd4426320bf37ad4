import { isOperationId, type KnownOperation, type ListPage, type ListQuery, type OperationView } from '#domain';
import type { Pool } from '../postgres/database.js';
import { readCursor, writeCursor } from './list-cursor.js';
import { searchTerm } from './projected-operation.js';

const LIMIT_MAX = 100;
/** A page takes milliseconds. What takes this long must not keep a connection busy any longer. */
const STATEMENT_TIMEOUT_MS = 2_000;
/**
 * The planner walks through the newest operations where it takes a term for a common one, and can't know that all that match lie far back.
 * A walk that has found no page by now is given up, and the index of terms is asked for all matches.
 */
const WALK_TIMEOUT_MS = 250;
const QUERY_CANCELED = '57014';

const NOTHING: ListPage = { operations: [], nextCursor: null };

/** Lists of operations, newest first, read from the status view. */
export class PostgresOperationView implements OperationView {
  constructor(private readonly pool: Pool) {}

  /** @throws InvalidCursor; or what the database says, with code 57014 where it took longer than two seconds */
  async list(query: ListQuery): Promise<ListPage> {
    const { limit, cursor } = query;
    if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) throw new RangeError(`limit is an integer from 1 to ${LIMIT_MAX}.`);
    const filters = filtersOf(query, cursor === null ? null : readCursor(query, cursor));
    if (filters === null) return NOTHING;
    // One more than asked for tells whether there is a next page.
    const rows = await this.search(filters, limit + 1);
    const page = rows.slice(0, limit);
    return {
      operations: page.map(({ state }) => JSON.parse(state) as KnownOperation),
      nextCursor: rows.length > limit ? writeCursor(query, BigInt(page.at(-1)!.position)) : null,
    };
  }

  private async search({ conditions, values, byTerm }: Filters, limit: number): Promise<ListRow[]> {
    const text = (order: string) =>
      `select position, state from onefold.operation_view where ${conditions.join(' and ')} order by ${order} desc limit ${limit}`;
    if (!byTerm) return this.read(text('position'), values, STATEMENT_TIMEOUT_MS);
    try {
      return await this.read(text('position'), values, WALK_TIMEOUT_MS);
    } catch (error) {
      if ((error as { code?: string }).code !== QUERY_CANCELED) throw error;
      // An expression is in no index, which leaves the planner only the terms to begin with.
      return this.read(text('position + 0'), values, STATEMENT_TIMEOUT_MS);
    }
  }

  private async read(text: string, values: unknown[], timeoutMs: number): Promise<ListRow[]> {
    const client = await this.pool.connect();
    let broken: Error | undefined;
    try {
      await client.query(`begin read only; set local statement_timeout = ${timeoutMs}`);
      // Without a name, so that each list is planned for its own values: a rare term and a common one need different ways.
      const { rows } = await client.query<ListRow>(text, values);
      await client.query('commit');
      return rows;
    } catch (error) {
      await client.query('rollback').catch((rollbackError: Error) => {
        broken = rollbackError;
      });
      throw error;
    } finally {
      client.release(broken);
    }
  }
}

interface ListRow {
  readonly position: string;
  readonly state: string;
}

interface Filters {
  readonly conditions: readonly string[];
  readonly values: unknown[];
  /** Whether one of them looks for a term. */
  readonly byTerm: boolean;
}

/** Null where nothing can match. */
function filtersOf({ tenant, status, actionType, workflowId, term }: ListQuery, below: bigint | null): Filters | null {
  const values: unknown[] = [tenant];
  const conditions = ['tenant = $1'];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const hasTerm = (search: string) => `terms @> array[${parameter(search)}::text]`;
  if (status !== null) conditions.push(`status = ${parameter(status)}`);
  if (actionType !== null) {
    const search = searchTerm(tenant, 'action', actionType);
    if (search === null) return null;
    conditions.push(hasTerm(search));
  }
  if (workflowId !== null) {
    const search = searchTerm(tenant, 'id', workflowId);
    if (search === null) return null;
    conditions.push(hasTerm(search), `workflow_id = ${parameter(workflowId)}`);
  }
  if (term !== null) {
    const search = searchTerm(tenant, 'id', term);
    if (search === null) return null;
    // An operation's own id may also be what another one's identity names, as in the refund of an order.
    conditions.push(isOperationId(term) ? `(${hasTerm(search)} or operation_id = ${parameter(term)})` : hasTerm(search));
  }
  if (below !== null) conditions.push(`position < ${parameter(String(below))}`);
  return { conditions, values, byTerm: actionType !== null || workflowId !== null || term !== null };
}
