import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Configuration } from '#adapters/configuration/configuration.js';
import { ConfigurationFaults } from '#adapters/configuration/faults.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import type { Logger } from '#adapters/observability/logger.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { openPool } from '#adapters/postgres/database.js';
import { startEmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import { migrate } from '#adapters/postgres/migrate.js';
import type { ProjectorEngine } from './projector.module.js';

export interface ProjectorDatabase extends ProjectorEngine {
  close(): Promise<void>;
}

/** Opens the database that `DATABASE_URL` names. @throws ConfigurationFaults where it names none */
export async function openDatabase({ databaseUrl }: Pick<Configuration, 'databaseUrl'>, logger: Logger): Promise<ProjectorDatabase> {
  if (databaseUrl === null) {
    const wayOut = 'Set it to the database of the event log; npm start needs no projector beside it.';
    throw new ConfigurationFaults('environment', [{ path: 'DATABASE_URL', rule: 'Is needed by a projector of its own.', wayOut }]);
  }
  return open(databaseUrl, logger);
}

/** As `openDatabase`; without `DATABASE_URL`, the embedded database in the data folder, while nothing else runs it. */
export async function openDatabaseOrEmbedded(configuration: Configuration, logger: Logger): Promise<ProjectorDatabase> {
  if (configuration.databaseUrl !== null) return openDatabase(configuration, logger);
  const dataDir = resolve(configuration.dataDir);
  if (!existsSync(join(dataDir, 'postgres'))) {
    const wayOut = 'Set DATABASE_URL, or name the folder in which npm start keeps its database.';
    throw new ConfigurationFaults('environment', [{ path: 'ONEFOLD_DATA_DIR', rule: 'Holds no database.', wayOut }]);
  }
  const postgres = await startEmbeddedPostgres({ dataDir });
  try {
    const database = await open(postgres.url, logger);
    const close = async () => {
      await database.close();
      await postgres.stop();
    };
    return { ...database, close };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

async function open(url: string, logger: Logger): Promise<ProjectorDatabase> {
  const applicationName = 'onefold-projector';
  const onIdleError = (err: Error) => logger.warn({ err }, 'an idle database connection broke');
  const pool = openPool({ url, applicationName, onIdleError });
  const derivedPool = openPool({ url, applicationName, durable: false, onIdleError });
  const log = new PostgresEventLog(pool, { url, applicationName, hashing: nodeHashing });
  const close = async () => {
    await log.close();
    await Promise.all([pool.end(), derivedPool.end()]);
  };
  try {
    await migrate(pool);
    return { log, derivedPool, checkpoints: new Checkpoints(derivedPool), close };
  } catch (error) {
    await close();
    throw error;
  }
}
