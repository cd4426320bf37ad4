import type { DataKey, DataKeyRecord, DataKeys } from '#domain';
import type { KeyWrapper } from '../../crypto/sealer.js';
import { orUnavailable, type Pool } from '../../postgres/database.js';
import { GatheringReader } from '../../postgres/gathering-reader.js';

const KEYS_MAX = 1_000;

/** Data keys beside the PostgreSQL log; `PostgresEventLog.append` stores new ones together with the events that need them. */
export class PostgresDataKeys implements DataKeys {
  private readonly single = new GatheringReader<DataKeyRecord | null>((keyIds) => this.records(keyIds), null);

  constructor(
    private readonly pool: Pool,
    private readonly wrapper: KeyWrapper,
  ) {}

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
}
