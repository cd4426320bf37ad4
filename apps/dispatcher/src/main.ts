// The dispatcher as a process of its own.
import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { NestFactory } from '@nestjs/core';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import { givenSecrets } from '#adapters/configuration/given-secrets.js';
import { createProviders } from '#adapters/providers/create-providers.js';
import { openEngine } from '#adapters/runtime/open-engine.js';
import { openFeeds } from '#adapters/runtime/open-feeds.js';
import { feedHealth, runService } from '#adapters/runtime/service.js';
import { DispatcherModule, DispatcherService } from './dispatcher.module.js';

await runService({
  name: 'dispatcher',
  needs: ['DATABASE_URL', 'ONEFOLD_MASTER_KEYS'],
  async start({ configuration, logger, metrics }) {
    const { databaseUrl, catalogueFile } = configuration;
    const clientId = 'onefold-dispatcher';
    const catalogue = loadCatalogue(catalogueFile, process.env);
    const engine = await openEngine({
      ...configuration,
      databaseUrl: databaseUrl!,
      applicationName: clientId,
      // It derives no identity.
      identitySecrets: null,
      masterKeys: givenSecrets(configuration).masterKeys!,
      logger,
    });
    const providers = createProviders(catalogue);
    const close = async () => {
      await Promise.all([...providers.values()].map((provider) => provider.close()));
      await engine.close();
    };
    try {
      const openFeed = await openFeeds(engine, { ...configuration, clientId, metrics, logger });
      const worker = `${hostname()}:${process.pid}`;
      const service = new DispatcherService({
        engine,
        openFeed,
        catalogue,
        providers,
        worker,
        newId: () => randomUUID(),
        metrics,
        logger,
      });
      const app = await NestFactory.createApplicationContext(DispatcherModule.with(service), { logger: false });
      const stop = async () => {
        await app.close();
        await close();
      };
      return { readiness: [{ name: 'event_log', check: () => engine.check() }, feedHealth(service.feed)], url: null, stop };
    } catch (error) {
      await close();
      throw error;
    }
  },
});
