import { randomBytes } from 'node:crypto';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { createSealer, type KeyWrapper } from '#adapters/crypto/sealer.js';
import { EventStoreDbEventLog, type EventStoreDbOptions } from '#adapters/event-store/eventstoredb/eventstoredb-event-log.js';
import { PostgresDataKeys } from '#adapters/event-store/postgres/postgres-data-keys.js';
import { openPool } from '#adapters/postgres/database.js';
import type { DataKeyRecord, Sealer } from '#domain';
import { createLogDatabase } from '../../../../support/event-log-postgres.js';
import { EventStoreDbDouble } from '../../../../support/eventstoredb-double/eventstoredb-double.js';

export interface OpenEventStoreDb {
  readonly log: EventStoreDbEventLog;
  readonly dataKeys: PostgresDataKeys;
  readonly sealer: Sealer & KeyWrapper;
  close(): Promise<void>;
}

/** A log on the server of `EVENTSTORE_URL`, or else on a double with events of others in it; data keys in a database of its own. */
export async function openEventStoreDb(): Promise<OpenEventStoreDb> {
  const double = process.env.EVENTSTORE_URL ? null : await EventStoreDbDouble.start();
  double?.writeForeign('$stats-127.0.0.1:2113', 3);
  const database = await createLogDatabase();
  const pool = openPool({ url: database.url, poolSize: 2, onIdleError: () => undefined });
  const sealer = createSealer([{ version: 'v1', key: randomBytes(32) }]);
  const dataKeys = new PostgresDataKeys(pool, sealer);
  const log = new EventStoreDbEventLog({ url: double?.url ?? process.env.EVENTSTORE_URL!, hashing: nodeHashing, dataKeys });
  return {
    ...{ log, dataKeys, sealer },
    close: async () => {
      await log.close();
      await double?.close();
      await pool.end();
      await database.drop();
    },
  };
}

/** Data keys in memory, for what is about the log alone. */
export class KeptKeys {
  readonly kept = new Map<string, DataKeyRecord>();

  async add(record: DataKeyRecord): Promise<boolean> {
    const isNew = !this.kept.has(record.keyId);
    if (isNew) this.kept.set(record.keyId, record);
    return isNew;
  }

  async remove(keyId: string): Promise<void> {
    this.kept.delete(keyId);
  }
}

/** One more process's view of a double. */
export function openLogOf(double: EventStoreDbDouble, options: Partial<EventStoreDbOptions> = {}): EventStoreDbEventLog {
  return new EventStoreDbEventLog({ url: double.url, hashing: nodeHashing, dataKeys: new KeptKeys(), ...options });
}
