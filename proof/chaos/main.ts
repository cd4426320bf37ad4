// npm run chaos [-- --operations N] [--minutes M] [--seed K]
import { randomInt } from 'node:crypto';
import { KafkaUnavailable } from '../../stack/kafka/broker-files.js';
import { readArguments, USAGE, UsageError } from './arguments.js';
import { runChaos } from './run.js';

const SEEDS = 2 ** 32;

class EndedByHand extends Error {
  override readonly name = 'EndedByHand';
}

const tell = (text: string) => process.stderr.write(`chaos: ${text}\n`);
const byHand = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => {
    tell(`${name}: stopping`);
    byHand.abort(new EndedByHand(`ended by ${name}`));
  });
}

try {
  const summary = await runChaos(readArguments(process.argv.slice(2), randomInt(SEEDS)), tell, byHand.signal);
  process.stdout.write(`${JSON.stringify(summary)}\n`);
  const isGood = summary.duplicates + summary.lost + summary.violations === 0 && summary.settled_after_ms !== null;
  // At once: after a long run Node takes minutes to take down what nobody needs any more.
  process.exit(isGood ? 0 : 1);
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message === '' ? '' : `onefold: ${error.message}\n`}${USAGE}\n`);
    process.exitCode = error.message === '' ? 0 : 2;
  } else if (error instanceof EndedByHand || error instanceof KafkaUnavailable) {
    tell(error.message);
    process.exitCode = 1;
  } else throw error;
}
