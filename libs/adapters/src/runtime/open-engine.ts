import type { CommandPorts, DataKeys, DueWork, IdentitySecret, Sealer } from '#domain';
import { nodeHashing } from '../crypto/hashing.js';
import { createSealer, type MasterKey } from '../crypto/sealer.js';
import { PostgresDueWork } from '../due-work/postgres-due-work.js';
import { PostgresDataKeys } from '../event-store/postgres/postgres-data-keys.js';
import { PostgresEventLog } from '../event-store/postgres/postgres-event-log.js';
import type { Logger } from '../observability/logger.js';
import { Checkpoints } from '../postgres/checkpoints.js';
import { openPool, type Pool } from '../postgres/database.js';
import { migrate, weakDurabilitySettings } from '../postgres/migrate.js';
import { checkSecrets } from '../postgres/secret-fingerprints.js';
import { PostgresClock } from '../postgres/postgres-clock.js';

export interface EngineOptions {
  readonly databaseUrl: string;
  readonly masterKeys: readonly [MasterKey, ...MasterKey[]];
  readonly identitySecrets: readonly IdentitySecret[];
  /** Start although the database may lose what it has confirmed. */
  readonly allowWeakDurability: boolean;
  readonly logger: Logger;
}

/** The ports that stand on PostgreSQL, opened and ready. */
export interface Engine extends CommandPorts {
  readonly pool: Pool;
  /** For what is rebuilt from the log: its commits do not wait for the disk. */
  readonly derivedPool: Pool;
  readonly log: PostgresEventLog;
  readonly sealer: Sealer;
  readonly dataKeys: DataKeys;
  readonly dueWork: DueWork;
  readonly checkpoints: Checkpoints;
  /** Rejects when the log can't be read. */
  check(): Promise<void>;
  /** Finishes the appends under way and closes every connection. The last step of a shutdown. */
  close(): Promise<void>;
}

export class WeakDurability extends Error {
  override readonly name = 'WeakDurability';
}

/** Opens the database, brings its schema up to date and refuses one that could lose an acknowledged command. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { databaseUrl: url, masterKeys, allowWeakDurability, logger } = options;
  const onIdleError = (err: Error) => logger.warn({ err }, 'an idle database connection broke');
  const pool = openPool({ url, onIdleError });
  const derivedPool = openPool({ url, durable: false, onIdleError });
  const log = new PostgresEventLog(pool, { url, hashing: nodeHashing });
  let clock: PostgresClock | undefined;
  const close = async () => {
    clock?.stop();
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
    await checkSecrets(pool, nodeHashing, options);
    clock = await PostgresClock.start(pool, (err) => logger.warn({ err }, 'the database clock could not be read'));
    const sealer = createSealer(masterKeys);
    return {
      pool,
      derivedPool,
      log,
      clock,
      hashing: nodeHashing,
      sealer,
      dataKeys: new PostgresDataKeys(pool, sealer),
      dueWork: new PostgresDueWork(derivedPool),
      checkpoints: new Checkpoints(derivedPool),
      check: async () => void (await log.head()),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
