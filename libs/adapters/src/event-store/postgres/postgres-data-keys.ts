import { LogOverloaded, type DataKey, type DataKeyRecord, type DataKeys } from '#domain';
import type { KeyWrapper } from '../../crypto/sealer.js';
import { orUnavailable, type Pool } from '../../postgres/database.js';
import { GatheringReader } from '../../postgres/gathering-reader.js';

const KEYS_MAX = 1_000;
/** About a second of full load; whoever waits longer is better served by a refusal. */
const ADDING_MAX = 5_000;

interface Adding {
  readonly record: DataKeyRecord;
  readonly resolve: (isNew: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Data keys in PostgreSQL. Beside the log there, `PostgresEventLog.append` stores new ones together with the events that need them; a log
 * elsewhere adds them first.
 */
export class PostgresDataKeys implements DataKeys {
  private readonly single = new GatheringReader<DataKeyRecord | null>((keyIds) => this.records(keyIds), null);

  private adding: Adding[] = [];
  private isAdding = false;

  constructor(
    private readonly pool: Pool,
    private readonly wrapper: KeyWrapper,
  ) {}

  /**
   * Stores a new data key; durable when it resolves, given a pool that waits for the disk. Those that come while one statement is on its
   * way go into the next. False where a key of this id is there already, which then stays as it is.
   * @throws LogUnavailable, LogOverloaded
   */
  add(record: DataKeyRecord): Promise<boolean> {
    if (this.adding.length >= ADDING_MAX) return Promise.reject(new LogOverloaded(`${ADDING_MAX} data keys are already waiting.`));
    return new Promise((resolve, reject) => {
      this.adding.push({ record, resolve, reject });
      if (!this.isAdding) void this.addAll();
    });
  }

  /** Removes one that no stored event needs. @throws LogUnavailable */
  async remove(keyId: string): Promise<void> {
    await orUnavailable('Removing a data key', this.pool.query('delete from onefold.data_keys where key_id = $1', [keyId]));
  }

  async load(keyIds: readonly string[]): Promise<ReadonlyMap<string, DataKey>> {
    if (keyIds.length === 0) return new Map();
    if (keyIds.length > KEYS_MAX) throw new RangeError(`At most ${KEYS_MAX} data keys are loaded at once, not ${keyIds.length}.`);
    const [keyId] = keyIds;
    if (keyIds.length === 1) {
      const record = await this.single.read(keyId!);
      return new Map(record ? [[record.keyId, this.wrapper.unwrap(record)]] : []);
    }
    const records = await this.records(keyIds);
    return new Map([...records].map(([id, record]) => [id, this.wrapper.unwrap(record)]));
  }

  private async records(keyIds: readonly string[]): Promise<ReadonlyMap<string, DataKeyRecord>> {
    const text = 'select key_id, operation_id, wrapped from onefold.data_keys where key_id = any($1)';
    const query = this.pool.query<{ key_id: string; operation_id: string; wrapped: string }>({
      name: 'load-data-keys',
      text,
      values: [keyIds],
    });
    const { rows } = await orUnavailable('Reading data keys', query);
    return new Map(rows.map(({ key_id: keyId, operation_id: operationId, wrapped }) => [keyId, { keyId, operationId, wrapped }]));
  }

  async destroy(operationId: string): Promise<number> {
    const query = this.pool.query('delete from onefold.data_keys where operation_id = $1', [operationId]);
    const { rowCount } = await orUnavailable('Destroying data keys', query);
    return rowCount ?? 0;
  }

  private async addAll(): Promise<void> {
    this.isAdding = true;
    while (this.adding.length > 0) {
      // One turn of the event loop lets the requests that have already arrived join.
      await new Promise((resolve) => setImmediate(resolve));
      const batch = this.adding.splice(0, KEYS_MAX);
      try {
        const added = await this.insert(batch.map(({ record }) => record));
        // Twice in one batch: only one of them has put it there.
        for (const { record, resolve } of batch) resolve(added.delete(record.keyId));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.isAdding = false;
  }

  /** Ids of those that were not there before. */
  private async insert(records: readonly DataKeyRecord[]): Promise<Set<string>> {
    const text = `insert into onefold.data_keys (operation_id, key_id, wrapped)
      select * from unnest($1::text[], $2::text[], $3::text[]) on conflict (key_id) do nothing returning key_id`;
    const columns = [
      records.map(({ operationId }) => operationId),
      records.map(({ keyId }) => keyId),
      records.map(({ wrapped }) => wrapped),
    ];
    const query = this.pool.query<{ key_id: string }>({ name: 'add-data-keys', text, values: columns });
    const { rows } = await orUnavailable('Storing data keys', query);
    return new Set(rows.map((row) => row.key_id));
  }
}
