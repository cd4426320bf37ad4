import type { Configuration } from '../configuration/configuration.js';
import { ConfigurationFaults, type Fault } from '../configuration/faults.js';
import { readConfiguration } from '../configuration/read-configuration.js';
import type { Feed } from '../feed/feed.js';
import { createLogger, type Logger } from '../observability/logger.js';
import { createMetrics, type Metrics } from '../observability/metrics.js';
import { startProbeServer } from '../observability/probe-server.js';
import { ReadinessChecks, type ReadinessCheck } from '../observability/readiness.js';
import { PortTaken, toldPlainly } from './installation-faults.js';

export interface ServiceContext {
  readonly configuration: Configuration;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface RunningService {
  readonly readiness: readonly ReadinessCheck[];
  /** Where it listens; null where it has no HTTP interface and is given one for probes and metrics. */
  readonly url: string | null;
  /** Takes no more work, finishes what is under way and closes everything. */
  stop(): Promise<void>;
}

export interface ServiceDefinition {
  /** For example `relay`. */
  readonly name: string;
  /** What it can't run without, as the names of variables. */
  readonly needs: readonly (keyof typeof NEEDS)[];
  start(context: ServiceContext): Promise<RunningService>;
}

/** A process of its own has no data folder to keep made-up secrets in, and must share them with its neighbours. */
const NEEDS = {
  DATABASE_URL: ({ databaseUrl }: Configuration) => databaseUrl !== null,
  KAFKA_BROKERS: ({ kafka }: Configuration) => kafka !== null,
  ONEFOLD_API_KEYS: ({ apiKeys }: Configuration) => apiKeys.length > 0,
  ONEFOLD_IDENTITY_SECRETS: ({ identitySecrets }: Configuration) => identitySecrets !== null,
  ONEFOLD_MASTER_KEYS: ({ masterKeys }: Configuration) => masterKeys !== null,
};

/**
 * Runs one service as a process: reads the environment, starts it, prints one JSON line once it serves, and stops it on SIGINT, SIGTERM or
 * SIGHUP within `ONEFOLD_SHUTDOWN_TIMEOUT_MS`. `--check-config` only checks. Never returns to a caller that could go on.
 */
export async function runService(definition: ServiceDefinition): Promise<void> {
  const { name } = definition;
  const tell = (text: string) => process.stderr.write(`onefold ${name}: ${text}\n`);
  const fail = (error: unknown): never => {
    tell(toldPlainly(error));
    process.exit(1);
  };
  const [flag, ...more] = process.argv.slice(2);
  if (more.length > 0 || (flag !== undefined && flag !== '--check-config')) {
    tell('usage: [--check-config]; settings come from the environment, see docs/configuration.md');
    process.exit(flag === '--help' ? 0 : 2);
  }
  try {
    const configuration = readConfiguration(process.env);
    checkNeeds(definition, configuration);
    if (flag === '--check-config') {
      process.stdout.write('The environment is in order.\n');
      return;
    }
    const logger = createLogger({ process: name, level: configuration.logLevel, stream: process.stderr });
    const metrics = createMetrics();
    const service = await definition.start({ configuration, logger, metrics });
    const probes = service.url === null ? await startProbes(service, { configuration, logger, metrics }) : null;
    stopOnSignal(configuration.shutdownTimeoutMs, { tell, fail }, async () => {
      await service.stop();
      await probes?.close();
    });
    process.stdout.write(`${JSON.stringify({ ready: true, process: name, url: service.url ?? probes!.url })}\n`);
  } catch (error) {
    fail(error);
  }
}

function checkNeeds({ name, needs }: ServiceDefinition, configuration: Configuration): void {
  const missing: Fault[] = needs
    .filter((need) => !NEEDS[need](configuration))
    .map((path) => ({ path, rule: `Is needed by the ${name}.`, wayOut: 'Give all processes of an installation the same value.' }));
  if (missing.length > 0) throw new ConfigurationFaults('environment', missing);
}

async function startProbes(service: RunningService, { configuration, logger, metrics }: ServiceContext) {
  const { host, port } = configuration;
  const readiness = new ReadinessChecks(service.readiness, logger, () => performance.now());
  try {
    const probes = await startProbeServer({ host, port }, readiness, metrics);
    return { url: httpUrl(host, probes.port), close: () => probes.close() };
  } catch (error) {
    await service.stop();
    throw PortTaken.of(error, port, 'PORT');
  }
}

/** Fails while the feed can't be expected to deliver; otherwise tells how far it is behind. */
export function feedHealth(feed: Feed): ReadinessCheck {
  return {
    name: 'feed',
    check: async () => {
      if (!feed.healthy()) throw new RangeError('The feed does not deliver.');
      const lag = await feed.lag();
      return lag === null ? 'lag unknown' : `${lag} behind`;
    },
  };
}

/** @param host a name or an address, IPv6 without brackets */
export function httpUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function stopOnSignal(
  timeoutMs: number,
  { tell, fail }: { readonly tell: (text: string) => void; readonly fail: (error: unknown) => never },
  stop: () => Promise<void>,
): void {
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // A second signal while draining changes nothing: the drain is bounded, and cutting it short would leave leases behind.
      if (stopping) return;
      stopping = true;
      setTimeout(() => {
        tell('did not stop in time; what was under way is found out about after its lease');
        process.exit(1);
      }, timeoutMs).unref();
      stop().then(() => process.exit(0), fail);
    });
  }
}
