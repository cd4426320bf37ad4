// The command API as a process of its own: dispatchers elsewhere make the calls.
import 'reflect-metadata';
import { randomBytes, randomUUID } from 'node:crypto';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import { givenSecrets } from '#adapters/configuration/given-secrets.js';
import { ParkedRecords } from '#adapters/postgres/parked-records.js';
import { openEngine } from '#adapters/runtime/open-engine.js';
import { runService } from '#adapters/runtime/service.js';
import { PostgresOperationView } from '#adapters/view/postgres-operation-view.js';
import type { IdentitySecrets } from '#domain';
import { createCommandApi } from './app.js';
import { listen } from './listen.js';

await runService({
  name: 'command-api',
  needs: ['DATABASE_URL', 'ONEFOLD_API_KEYS', 'ONEFOLD_IDENTITY_SECRETS', 'ONEFOLD_MASTER_KEYS'],
  async start({ configuration, logger, metrics }) {
    const { databaseUrl, apiKeys, catalogueFile, rateLimitPerSecond } = configuration;
    const catalogue = loadCatalogue(catalogueFile, process.env);
    const { identitySecrets, masterKeys } = givenSecrets(configuration);
    const engine = await openEngine({
      ...configuration,
      databaseUrl: databaseUrl!,
      applicationName: 'onefold-command-api',
      identitySecrets: identitySecrets!,
      masterKeys: masterKeys!,
      logger,
    });
    const readiness = [{ name: 'event_log', check: () => engine.check() }];
    try {
      const app = await createCommandApi({
        ...engine,
        catalogue,
        identitySecrets: identitySecrets as IdentitySecrets,
        apiKeys,
        // Hashes of keys are kept in memory only, so that they need not agree with those of another process.
        apiKeyPepper: randomBytes(32).toString('hex'),
        view: new PostgresOperationView(engine.pool),
        parked: configuration.feed === 'kafka' ? new ParkedRecords(engine.pool) : null,
        lane: null,
        limits: { rateLimitPerSecond: rateLimitPerSecond ?? 0 },
        readiness,
        logger,
        metrics,
        newId: () => randomUUID(),
      });
      const url = await listen(app, configuration);
      const stop = async () => {
        await app.close();
        await engine.close();
      };
      return { readiness, url, stop };
    } catch (error) {
      await engine.close();
      throw error;
    }
  },
});
