// Keeps the status view in step with the log, as a process of its own; or builds it anew.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { readConfiguration } from '#adapters/configuration/read-configuration.js';
import { createLogger } from '#adapters/observability/logger.js';
import { toldPlainly } from '#adapters/runtime/installation-faults.js';
import { openFeeds } from '#adapters/runtime/open-feeds.js';
import { openStore } from '#adapters/runtime/open-store.js';
import { feedHealth, runService, type RunningService, type ServiceContext } from '#adapters/runtime/service.js';
import { ProjectorModule, ProjectorService } from './projector.module.js';
import { digest, rebuild } from './rebuild-command.js';

const USAGE = `Usage: node dist/apps/projector/src/main.js [--rebuild | --digest | --check-config]

  (nothing)       keep the status view in step with the event log
  --rebuild       build the status view anew from the event log; the view in use is read and written meanwhile
  --digest        print count and SHA-256 of the status view
  --check-config  check the environment, start nothing
Settings come from the environment: see docs/configuration.md.`;

const tell = (text: string) => process.stderr.write(`onefold: ${text}\n`);

async function start({ configuration, logger, metrics }: ServiceContext): Promise<RunningService> {
  const clientId = 'onefold-projector';
  const store = await openStore({ ...configuration, databaseUrl: configuration.databaseUrl!, applicationName: clientId, logger });
  try {
    const openFeed = await openFeeds(store, { ...configuration, clientId, metrics, logger });
    const module = ProjectorModule.with({ ...store, openFeed, metrics, logger });
    const app = await NestFactory.createApplicationContext(module, { logger: false });
    const stop = async () => {
      await app.close();
      await store.close();
    };
    return { readiness: [{ name: 'event_log', check: () => store.check() }, feedHealth(app.get(ProjectorService).feed)], url: null, stop };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function runCommand(flag: string): Promise<void> {
  const configuration = readConfiguration(process.env);
  const logger = createLogger({ process: 'projector', level: configuration.logLevel, stream: process.stderr });
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => interrupted.abort(new Error(`Ended by ${signal}; the view is as it was.`)));
  }
  const options = { configuration, logger, tell, signal: interrupted.signal };
  const report = flag === '--rebuild' ? await rebuild(options) : await digest(options);
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

const flags = process.argv.slice(2);
const isKnown = flags.length <= 1 && flags.every((flag) => ['--rebuild', '--digest', '--check-config', '--help'].includes(flag));
if (!isKnown || flags[0] === '--help') {
  process.stderr.write(`${isKnown ? '' : 'onefold: unknown option, or more than one\n'}${USAGE}\n`);
  process.exit(isKnown ? 0 : 2);
}
if (flags.length === 0 || flags[0] === '--check-config') {
  await runService({ name: 'projector', needs: ['DATABASE_URL'], start });
} else {
  await runCommand(flags[0]!).catch((error: unknown) => {
    tell(toldPlainly(error));
    process.exit(1);
  });
}
