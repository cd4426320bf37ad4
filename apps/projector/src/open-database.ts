import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Configuration } from '#adapters/configuration/configuration.js';
import { ConfigurationFaults } from '#adapters/configuration/faults.js';
import type { Logger } from '#adapters/observability/logger.js';
import { startEmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import { openStore, type Store } from '#adapters/runtime/open-store.js';

/**
 * Opens the database that `DATABASE_URL` names; without it, the embedded one in the data folder, while nothing else runs it.
 * @throws ConfigurationFaults where there is neither
 */
export async function openDatabaseOrEmbedded(configuration: Configuration, logger: Logger): Promise<Store> {
  const open = (databaseUrl: string) => openStore({ ...configuration, databaseUrl, applicationName: 'onefold-projector', logger });
  if (configuration.databaseUrl !== null) return open(configuration.databaseUrl);
  const dataDir = resolve(configuration.dataDir);
  if (!existsSync(join(dataDir, 'postgres'))) {
    const wayOut = 'Set DATABASE_URL, or name the folder in which npm start keeps its database.';
    throw new ConfigurationFaults('environment', [{ path: 'ONEFOLD_DATA_DIR', rule: 'Holds no database.', wayOut }]);
  }
  const postgres = await startEmbeddedPostgres({ dataDir });
  try {
    const store = await open(postgres.url);
    const close = async () => {
      await store.close();
      await postgres.stop();
    };
    return { ...store, close };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}
