import { createHash } from 'node:crypto';
import { canonicalJson, type KnownOperation } from '#domain';
import type { Pool } from '../postgres/database.js';
import type { ViewTableName } from './view-table.js';

const ROWS_PER_READ = 2_000;

export interface ViewDigest {
  readonly operations: number;
  /** Hex. Equal for two tables, or a table and a fold, that say the same of each operation. */
  readonly sha256: string;
}

/** Gathers operations in the order of their ids. */
export class DigestBuilder {
  private readonly hash = createHash('sha256');
  private operations = 0;

  add(operationId: string, revision: number, state: KnownOperation): void {
    this.operations++;
    this.hash.update(`${operationId}\n${revision}\n${canonicalJson(state)}\n`);
  }

  finish(): ViewDigest {
    return { operations: this.operations, sha256: this.hash.digest('hex') };
  }
}

/** Reads the whole table in steps, so that it holds no transaction open; only at rest is the digest one of a single moment. */
export async function digestOfView(pool: Pool, table: ViewTableName = 'operation_view'): Promise<ViewDigest> {
  const digest = new DigestBuilder();
  const text = `select operation_id, revision, state from onefold.${table}
where operation_id > $1 order by operation_id limit ${ROWS_PER_READ}`;
  for (let last = ''; ;) {
    const { rows } = await pool.query<{ operation_id: string; revision: number; state: string }>(text, [last]);
    for (const { operation_id, revision, state } of rows) digest.add(operation_id, revision, JSON.parse(state) as KnownOperation);
    // Each round moves on in a finite table.
    if (rows.length < ROWS_PER_READ) return digest.finish();
    last = rows.at(-1)!.operation_id;
  }
}
