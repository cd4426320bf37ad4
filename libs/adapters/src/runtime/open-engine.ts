import type { CommandPorts, DataKeys, DueWork, IdentitySecret, Sealer } from '#domain';
import { nodeHashing } from '../crypto/hashing.js';
import { createSealer, type MasterKey } from '../crypto/sealer.js';
import { PostgresDueWork } from '../due-work/postgres-due-work.js';
import { PostgresDataKeys } from '../event-store/postgres/postgres-data-keys.js';
import { checkSecrets } from '../postgres/secret-fingerprints.js';
import { PostgresClock } from '../postgres/postgres-clock.js';
import { openStore, type Store, type StoreOptions } from './open-store.js';

export interface EngineOptions extends StoreOptions {
  readonly masterKeys: readonly [MasterKey, ...MasterKey[]];
  /** Null for a process that derives no identities. */
  readonly identitySecrets: readonly IdentitySecret[] | null;
}

/** The store, and the ports that commands and attempts need besides. */
export interface Engine extends CommandPorts, Store {
  readonly sealer: Sealer;
  readonly dataKeys: DataKeys;
  readonly dueWork: DueWork;
}

/** Opens the store, and refuses secrets that are not those of this database. @throws SecretMismatch, WeakDurability, SchemaFault */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { masterKeys, logger } = options;
  const store = await openStore(options);
  try {
    await checkSecrets(store.pool, nodeHashing, options);
    const clock = await PostgresClock.start(store.pool, (err) => logger.warn({ err }, 'the database clock could not be read'));
    const sealer = createSealer(masterKeys);
    return {
      ...store,
      clock,
      hashing: nodeHashing,
      sealer,
      dataKeys: new PostgresDataKeys(store.pool, sealer),
      dueWork: new PostgresDueWork(store.derivedPool),
      close: async () => {
        clock.stop();
        await store.close();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}
