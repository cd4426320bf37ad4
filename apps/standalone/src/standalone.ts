import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { DynamicModule } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import type { ApiKey, Configuration } from '#adapters/configuration/configuration.js';
import type { Environment } from '#adapters/configuration/environment.js';
import { givenSecrets } from '#adapters/configuration/given-secrets.js';
import { createLogger, type Logger } from '#adapters/observability/logger.js';
import { createMetrics } from '#adapters/observability/metrics.js';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import { createProviders } from '#adapters/providers/create-providers.js';
import { PortTaken } from '#adapters/runtime/installation-faults.js';
import { openEngine, type Engine } from '#adapters/runtime/open-engine.js';
import { openFeeds } from '#adapters/runtime/open-feeds.js';
import { loadSecrets } from '#adapters/runtime/secrets.js';
import { PostgresOperationView } from '#adapters/view/postgres-operation-view.js';
import { createCommandApi } from '#apps/command-api/src/app.js';
import { listen } from '#apps/command-api/src/listen.js';
import { DispatcherModule, DispatcherService } from '#apps/dispatcher/src/dispatcher.module.js';
import { ProjectorModule } from '#apps/projector/src/projector.module.js';
import { LabPortTaken, startLab, type Lab } from '#apps/provider-lab/src/lab.js';
import type { Catalogue, ProviderAdapter } from '#domain';
import { catalogueEnvironment } from './catalogue-environment.js';
import { readStandaloneConfiguration } from './check-configuration.js';
import { developmentKey } from './development-key.js';

export interface Standalone {
  readonly url: string;
  /** Null where the catalogue needs no lab and none was started. */
  readonly labUrl: string | null;
  /** Null where keys are configured. */
  readonly developmentKey: string | null;
  readonly dataDir: string;
  readonly catalogue: Catalogue;
  /** Drains for at most `ONEFOLD_SHUTDOWN_TIMEOUT_MS` (each part gets a second at least), then stops the database. */
  stop(): Promise<void>;
}

/** Started parts, stopped in the opposite order. */
type Stop = { readonly what: string; readonly stop: () => Promise<void> };

/** Ports wrapped, and modules set beside the others, by the program that composes this one: what tests of faults need in place of hooks. */
export interface Decoration {
  engine?(engine: Engine): Engine;
  providers?(providers: ReadonlyMap<string, ProviderAdapter>): ReadonlyMap<string, ProviderAdapter>;
  readonly modules?: readonly DynamicModule[];
}

export interface StandaloneOptions {
  readonly onProgress: (text: string) => void;
  readonly decorate?: Decoration;
}

/** @throws whatever keeps it from starting; everything already started is stopped first */
export async function startStandalone(env: Environment, { onProgress, decorate = {} }: StandaloneOptions): Promise<Standalone> {
  const stops: Stop[] = [];
  const configuration = readStandaloneConfiguration(env);
  const logger = createLogger({ process: 'standalone', level: configuration.logLevel, stream: process.stderr });
  const stopAll = () => stopInTurn(stops, configuration.shutdownTimeoutMs, logger);
  try {
    const lab = await startBuiltInLab(configuration, env);
    if (lab) stops.push({ what: 'lab', stop: () => lab.close() });
    const labUrl = configuration.lab.url ?? lab?.url ?? null;
    const smtpUrl = `smtp://127.0.0.1:${lab?.smtpPort ?? configuration.lab.smtpPort}`;
    const addresses = labUrl === null ? null : { url: labUrl, smtpUrl };
    const catalogue = loadCatalogue(configuration.catalogueFile, catalogueEnvironment(env, addresses));
    const postgres = await startDatabase(configuration, onProgress, logger);
    if (postgres) stops.push({ what: 'database', stop: () => postgres.stop() });
    const secrets = loadSecrets(configuration.dataDir, givenSecrets(configuration));
    const { identitySecrets, masterKeys } = secrets;
    const databaseUrl = configuration.databaseUrl ?? postgres!.url;
    const opened = await openEngine({
      ...configuration,
      databaseUrl,
      applicationName: 'onefold-standalone',
      identitySecrets,
      masterKeys,
      logger,
    });
    stops.push({ what: 'event log', stop: () => opened.close() });
    const engine = decorate.engine?.(opened) ?? opened;
    const developer = configuration.apiKeys.length === 0 ? developmentKey(configuration.dataDir) : null;
    const app = await openApp({
      configuration,
      engine,
      catalogue,
      secrets,
      keys: developer ? [developer] : configuration.apiKeys,
      logger,
      stops,
      decorate,
    });
    const url = await listen(app, configuration);
    const { dataDir } = configuration;
    return { url, labUrl, developmentKey: developer?.key ?? null, dataDir, catalogue, stop: stopAll };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

interface AppParts {
  readonly configuration: Configuration;
  readonly engine: Engine;
  readonly catalogue: ReturnType<typeof loadCatalogue>;
  readonly secrets: ReturnType<typeof loadSecrets>;
  readonly keys: readonly ApiKey[];
  readonly logger: Logger;
  readonly stops: Stop[];
  readonly decorate: Decoration;
}

/** One Nest application of three apps' modules: the command API lends its first attempts to the dispatcher beside it. */
async function openApp(parts: AppParts): Promise<NestFastifyApplication> {
  const { configuration, engine, catalogue, secrets, keys, logger, stops, decorate } = parts;
  const metrics = createMetrics();
  engine.log.onAppended((events) => {
    for (const { event } of events) if (event.type === 'ReviewRequested') metrics.reviewsOpened.inc({ reason: event.data.reason });
  });
  const created = createProviders(catalogue);
  stops.push({
    what: 'providers',
    stop: async () => void (await Promise.all([...created.values()].map((provider) => provider.close()))),
  });
  const providers = decorate.providers?.(created) ?? created;
  const worker = `${hostname()}:${process.pid}`;
  const newId = () => randomUUID();
  const openFeed = await openFeeds(engine, { ...configuration, clientId: 'onefold-standalone', metrics, logger });
  const service = new DispatcherService({ engine, openFeed, catalogue, providers, worker, newId, metrics, logger });
  const app = await createCommandApi(
    {
      ...engine,
      catalogue,
      identitySecrets: secrets.identitySecrets,
      apiKeys: keys,
      apiKeyPepper: secrets.pepper,
      view: new PostgresOperationView(engine.pool),
      parked: null,
      lane: service.dispatcher,
      limits: { rateLimitPerSecond: configuration.rateLimitPerSecond ?? 0 },
      readiness: [{ name: 'event_log', check: () => engine.check() }],
      logger,
      metrics,
      newId,
    },
    [DispatcherModule.with(service), ProjectorModule.with({ ...engine, openFeed, metrics, logger }), ...(decorate.modules ?? [])],
  );
  stops.push({ what: 'application', stop: () => app.close() });
  return app;
}

/** Whether the catalogue takes an address from the environment that only a built-in lab could give. A missing file is told by its reader. */
function namesTheLab(catalogueFile: string, env: Environment): boolean {
  if (!existsSync(catalogueFile)) return false;
  const text = readFileSync(catalogueFile, 'utf8');
  return (text.includes('${LAB_URL}') && !env['LAB_URL']) || (text.includes('${SMTP_URL}') && !env['SMTP_URL']);
}

/** The lab that the demonstration catalogue calls; none where another one is named. */
async function startBuiltInLab({ lab, dataDir, catalogueFile }: Configuration, env: Environment): Promise<Lab | null> {
  if (lab.url !== null || !namesTheLab(catalogueFile, env)) return null;
  const file = lab.ledger ?? resolve(dataDir, 'lab-ledger.ndjson');
  const options = { port: lab.port, ledgerFile: file === 'memory' ? null : file };
  try {
    return await startLab({ ...options, smtpPort: lab.smtpPort }).catch((error: unknown) => {
      // Nobody asked for this port: the catalogue is told where the mail server is, so any free one will do.
      const chosenByUs = error instanceof LabPortTaken && error.setting === 'LAB_SMTP_PORT' && !env['LAB_SMTP_PORT'];
      if (chosenByUs) return startLab({ ...options, smtpPort: 0 });
      throw error;
    });
  } catch (error) {
    if (!(error instanceof LabPortTaken)) throw error;
    throw new PortTaken(`The provider lab could not start: ${error.message}.`, { cause: error });
  }
}

async function startDatabase(
  { databaseUrl, dataDir, databasePort }: Configuration,
  onProgress: (text: string) => void,
  logger: Logger,
): Promise<EmbeddedPostgres | null> {
  if (databaseUrl !== null) return null;
  const postgres = await startEmbeddedPostgres({
    dataDir: resolve(dataDir),
    ...(databasePort !== null && { port: databasePort }),
    onProgress,
  });
  postgres.onExit(() => {
    logger.fatal({}, 'the embedded database ended; nothing can be recorded any more, so the process ends too');
    process.exit(1);
  });
  return postgres;
}

/** Last started, first stopped. A part that does not end in time is left behind: its leases run out and tell the next start. */
async function stopInTurn(stops: Stop[], timeoutMs: number, logger: Logger): Promise<void> {
  const giveUpAt = performance.now() + timeoutMs;
  for (const { what, stop } of stops.splice(0).reverse()) {
    // The database is always stopped: left running, it would be in the way of the next start.
    const leftMs = what === 'database' ? Infinity : Math.max(1_000, giveUpAt - performance.now());
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((settle) => {
      if (Number.isFinite(leftMs)) timer = setTimeout(() => settle('late'), leftMs);
    });
    const outcome = await Promise.race([stop().catch((err: Error) => logger.error({ err }, `stopping the ${what} failed`)), late]);
    clearTimeout(timer);
    if (outcome === 'late') logger.warn({}, `the ${what} did not stop in time and is left behind`);
  }
}
