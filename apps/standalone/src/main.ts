// Everything in one process on an embedded PostgreSQL: the one-machine default, and what `npm start` runs.
import { toldPlainly } from '#adapters/runtime/installation-faults.js';
import { checkConfiguration } from './check-configuration.js';
import { startStandalone } from './standalone.js';
import { welcome } from './welcome.js';

const USAGE = `Usage: npm start [-- --check-config]

  --check-config   check the environment and the catalogue, list all faults, start nothing
Settings come from the environment: see docs/configuration.md.`;

function fail(error: unknown): never {
  process.stderr.write(`onefold: ${toldPlainly(error)}\n`);
  process.exit(1);
}

const flags = process.argv.slice(2);
const unknown = flags.find((flag) => !['--check-config', '--help'].includes(flag));
if (unknown !== undefined || flags.includes('--help')) {
  process.stderr.write(`${unknown === undefined ? '' : `onefold: unknown option ${unknown}\n`}${USAGE}\n`);
  process.exit(unknown === undefined ? 0 : 2);
}

try {
  // Before anything is started, so that one start tells every fault of both.
  const inOrder = checkConfiguration(process.env);
  if (flags.includes('--check-config')) {
    process.stdout.write(`${inOrder}\n`);
    process.exit(0);
  }
  const onProgress = (text: string) => process.stderr.write(`onefold: ${text} ...\n`);
  const standalone = await startStandalone(process.env, { onProgress });
  process.stdout.write(welcome(standalone));
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // A second signal while draining changes nothing: the drain is bounded, and cutting it short would leave leases behind.
      if (stopping) return;
      stopping = true;
      onProgress('stopping: no new calls, finishing those under way');
      standalone.stop().then(() => process.exit(0), fail);
    });
  }
} catch (error) {
  fail(error);
}
