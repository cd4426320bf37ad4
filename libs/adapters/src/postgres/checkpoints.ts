import type { Pool } from './database.js';

/** Last finished position by reader; `load` gives 0 for a reader that never finished one. */
export class Checkpoints {
  /**
   * @param pool its commits need not wait for the disk: a checkpoint lost in a crash only repeats work that changes nothing, and it can't
   * survive the rows it stands for, since those were committed before it in the same write-ahead log
   */
  constructor(private readonly pool: Pool) {}

  async load(name: string): Promise<bigint> {
    const { rows } = await this.pool.query<{ position: string }>('select position from onefold.checkpoints where name = $1', [name]);
    return BigInt(rows[0]?.position ?? 0);
  }

  /**
   * Moves a reader on from where it believes to stand.
   * @returns false where it stands elsewhere: a crash of the database took back what was not yet on disk, or somebody else moved it
   */
  async advance(name: string, from: bigint, to: bigint): Promise<boolean> {
    const { rowCount } = await this.pool.query({ name: 'advance-checkpoint', text: ADVANCE, values: [name, String(from), String(to)] });
    return rowCount === 1;
  }
}

const ADVANCE = `with moved as (
  update onefold.checkpoints set position = $3::bigint where name = $1 and position = $2::bigint and position <= $3::bigint returning 1
), begun as (
  insert into onefold.checkpoints (name, position) select $1, $3::bigint where $2::bigint = 0 and not exists (select from moved)
  on conflict do nothing returning 1
)
select from moved union all select from begun`;
