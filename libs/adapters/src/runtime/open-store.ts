import type { EventLog } from '#domain';
import type { Configuration } from '../configuration/configuration.js';
import { nodeHashing } from '../crypto/hashing.js';
import type { KeyWrapper } from '../crypto/sealer.js';
import { PostgresDataKeys } from '../event-store/postgres/postgres-data-keys.js';
import { PostgresEventLog } from '../event-store/postgres/postgres-event-log.js';
import type { Logger } from '../observability/logger.js';
import { Checkpoints } from '../postgres/checkpoints.js';
import { openPool, type Pool } from '../postgres/database.js';
import { migrate, weakDurabilitySettings } from '../postgres/migrate.js';

export interface StoreOptions extends Pick<Configuration, 'eventStore' | 'eventStoreUrl' | 'feed' | 'allowWeakDurability'> {
  readonly databaseUrl: string;
  /** Shown by the database and the broker, for example `onefold-relay`. */
  readonly applicationName: string;
  readonly logger: Logger;
}

/** The event log, and the PostgreSQL database beside or under it, opened and ready. */
export interface Store {
  readonly log: EventLog;
  readonly pool: Pool;
  /**
   * For what is rebuilt from the log. Its commits do not wait for the disk where the feed's checkpoint is in the same database, whose
   * write-ahead log keeps their order; offsets that a broker keeps must not get ahead of the rows they stand for.
   */
  readonly derivedPool: Pool;
  readonly checkpoints: Checkpoints;
  /** Rejects when the log can't be read. */
  check(): Promise<void>;
  /** Finishes the appends under way and closes every connection. The last step of a shutdown. */
  close(): Promise<void>;
}

export class WeakDurability extends Error {
  override readonly name = 'WeakDurability';
}

/** Opens the database and the log, brings the schema up to date and refuses a database that could lose an acknowledged command. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { databaseUrl: url, applicationName, feed, allowWeakDurability, logger } = options;
  const onIdleError = (err: Error) => logger.warn({ err }, 'an idle database connection broke');
  const pool = openPool({ url, applicationName, onIdleError });
  const derivedPool = openPool({ url, applicationName, durable: feed === 'kafka', onIdleError });
  const log = await openLog(options, pool);
  const close = async () => {
    await log.close();
    await Promise.all([pool.end(), derivedPool.end()]);
  };
  try {
    const applied = await migrate(pool);
    if (applied.length > 0) logger.info({ count: applied.length }, 'database schema brought up to date');
    const weak = await weakDurabilitySettings(pool);
    if (weak.length > 0 && !allowWeakDurability) {
      throw new WeakDurability(
        `The database could lose what it has confirmed (${weak.join(', ')}). Set these to on, or ONEFOLD_ALLOW_WEAK_DURABILITY=true to accept the loss.`,
      );
    }
    const checkpoints = new Checkpoints(derivedPool);
    return { log, pool, derivedPool, checkpoints, check: async () => void (await log.head()), close };
  } catch (error) {
    await close();
    throw error;
  }
}

type ClosableLog = EventLog & { close(): Promise<void> };

async function openLog(options: StoreOptions, pool: Pool): Promise<ClosableLog> {
  const { databaseUrl, applicationName, eventStore, eventStoreUrl, logger } = options;
  if (eventStore === 'postgres') return new PostgresEventLog(pool, { url: databaseUrl, applicationName, hashing: nodeHashing });
  // Loaded only where it is used: the client brings gRPC along.
  const { EventStoreDbEventLog } = await import('../event-store/eventstoredb/eventstoredb-event-log.js');
  return new EventStoreDbEventLog({ url: eventStoreUrl!, hashing: nodeHashing, dataKeys: new PostgresDataKeys(pool, SEALED_ONLY), logger });
}

/** The log stores data keys as they come, wrapped; it opens none. */
const SEALED_ONLY: KeyWrapper = {
  unwrap: () => {
    throw new Error('The event log opens no data key.');
  },
};
