// Keeps the status view in step with the log, as a process of its own; or builds it anew.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { Configuration } from '#adapters/configuration/configuration.js';
import { ConfigurationFaults } from '#adapters/configuration/faults.js';
import { readConfiguration } from '#adapters/configuration/read-configuration.js';
import { createLogger, type Logger } from '#adapters/observability/logger.js';
import { createMetrics } from '#adapters/observability/metrics.js';
import { EmbeddedPostgresError } from '#adapters/postgres/embedded/index.js';
import { SchemaFault } from '#adapters/postgres/migrate.js';
import { RebuildOvertaken, RebuildUnderWay } from '#adapters/view/rebuild-operation-view.js';
import { openDatabase } from './open-database.js';
import { ProjectorModule } from './projector.module.js';
import { digest, rebuild } from './rebuild-command.js';

const USAGE = `Usage: node dist/apps/projector/src/main.js [--rebuild | --digest]

  (nothing)   keep the status view in step with the event log
  --rebuild   build the status view anew from the event log; the view in use is read and written meanwhile
  --digest    print count and SHA-256 of the status view
Settings come from the environment: see docs/configuration.md.`;

/** Faults of the installation or of the moment: told in their own words. Everything else is a fault of the program and keeps its stack. */
const TOLD_PLAINLY = [ConfigurationFaults, EmbeddedPostgresError, SchemaFault, RebuildUnderWay, RebuildOvertaken];

const tell = (text: string) => process.stderr.write(`onefold: ${text}\n`);
const print = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);

function fail(error: unknown): never {
  const plain = TOLD_PLAINLY.some((kind) => error instanceof kind);
  tell(plain ? (error as Error).message : ((error as Error).stack ?? String(error)));
  process.exit(1);
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

async function serve(configuration: Configuration, logger: Logger): Promise<void> {
  const engine = await openDatabase(configuration, logger);
  const dependencies = { engine, metrics: createMetrics(), logger };
  const app = await NestFactory.createApplicationContext(ProjectorModule.with(dependencies), { logger: false });
  let stopping = false;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      // A batch that is cut off is handed over again by the next start.
      setTimeout(() => process.exit(1), configuration.shutdownTimeoutMs).unref();
      app
        .close()
        .then(() => engine.close())
        .then(() => process.exit(0), fail);
    });
  }
  print({ ready: true, process: 'projector' });
}

async function run(flags: readonly string[]): Promise<void> {
  const configuration = readConfiguration(process.env);
  const logger = createLogger({ process: 'projector', level: configuration.logLevel, stream: process.stderr });
  if (flags.length === 0) return serve(configuration, logger);
  const interrupted = new AbortController();
  for (const signal of SIGNALS) process.once(signal, () => interrupted.abort(new Error(`Ended by ${signal}; the view is as it was.`)));
  const options = { configuration, logger, tell, signal: interrupted.signal };
  print(flags[0] === '--rebuild' ? await rebuild(options) : await digest(options));
}

const flags = process.argv.slice(2);
const isKnown = flags.length <= 1 && flags.every((flag) => ['--rebuild', '--digest', '--help'].includes(flag));
if (!isKnown || flags[0] === '--help') {
  process.stderr.write(`${isKnown ? '' : 'onefold: unknown option, or more than one\n'}${USAGE}\n`);
  process.exit(isKnown ? 0 : 2);
}
run(flags).catch(fail);
