// npm run stack: the distributed layout as separate processes on this machine, with a real Kafka broker, until Ctrl-C.
import { toldPlainly } from '#adapters/runtime/installation-faults.js';
import { KafkaUnavailable } from './kafka/broker-files.js';
import { KafkaStartFailed } from './kafka/broker-node.js';
import type { Environment } from './service-environment.js';
import { ServiceNotStarted } from './service-process.js';
import { startStack, type Stack, type StackOptions } from './stack.js';

const USAGE = `Usage: npm run stack

Two of each service, PostgreSQL, a Kafka broker and the provider lab. Needs Java 17 and Maven. From the environment:
  STACK_BROKERS      1 or 3 Kafka brokers (1)
  KAFKA_BROKERS      host:port of brokers that run already, in place of that
  ONEFOLD_DATA_DIR   where everything is kept; left out: a temporary folder that is removed at the end
  PORT, LAB_PORT     of the first command API (the second has the next one) and of the lab; left out: free ones
  ONEFOLD_CATALOGUE, ONEFOLD_KAFKA_PARTITIONS, ONEFOLD_KAFKA_REPLICATION_FACTOR, ONEFOLD_LOG_LEVEL, ONEFOLD_RATE_LIMIT_PER_SECOND,
  ONEFOLD_SHUTDOWN_TIMEOUT_MS
                     as docs/configuration.md says, for all services`;

const HANDED_ON = [
  ...['ONEFOLD_CATALOGUE', 'ONEFOLD_KAFKA_PARTITIONS', 'ONEFOLD_KAFKA_REPLICATION_FACTOR', 'ONEFOLD_LOG_LEVEL'],
  ...['ONEFOLD_RATE_LIMIT_PER_SECOND', 'ONEFOLD_SHUTDOWN_TIMEOUT_MS'],
];

const tell = (text: string) => process.stderr.write(`stack: ${text}\n`);

/** What is wrong with the machine or with a part is told in its own words, without a trace of ours. */
const PLAIN = [KafkaUnavailable, KafkaStartFailed, ServiceNotStarted];

function fail(error: unknown): never {
  tell(PLAIN.some((kind) => error instanceof kind) ? (error as Error).message : toldPlainly(error));
  process.exit(1);
}

/** Nothing where the variable is not set or leaves the choice to us. */
function readPort(name: string): number | undefined {
  const text = process.env[name];
  if (!text || text === '0') return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_535) return Number(text);
  tell(`${name} must be a port from 0 to 65534, not "${text}"`);
  process.exit(2);
}

function readOptions(): StackOptions {
  const brokers = process.env['STACK_BROKERS'] || '1';
  if (brokers !== '1' && brokers !== '3') {
    tell(`STACK_BROKERS must be 1 or 3, not "${brokers}"`);
    process.exit(2);
  }
  const all = Object.fromEntries(HANDED_ON.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))) as Environment;
  const dataDir = process.env['ONEFOLD_DATA_DIR'];
  const kafkaBrokers = process.env['KAFKA_BROKERS'];
  const [api, lab] = [readPort('PORT'), readPort('LAB_PORT')];
  return {
    brokers: brokers === '3' ? 3 : 1,
    env: { all },
    ...(dataDir && { dataDir }),
    ...(kafkaBrokers && { kafkaBrokers }),
    ports: { ...(api && { api }), ...(lab && { lab }) },
  };
}

if (process.argv.length > 2) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(process.argv[2] === '--help' ? 0 : 2);
}

let stack: Stack | undefined;
let isEnding = false;

/** Once, with the status of the first reason. */
function end(status: number): void {
  if (isEnding) return;
  isEnding = true;
  // Half started: the guard ends what is there when this process is gone.
  if (!stack) process.exit(status || 1);
  tell('stopping');
  stack.stop().then(() => process.exit(status), fail);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end(0));

try {
  stack = await startStack({
    ...readOptions(),
    onProgress: (text) => tell(`${text} ...`),
    onEnd: ({ process: name, how, lastWords }) => {
      tell(`${name} ended by itself (${how})${lastWords && `:\n${lastWords}`}`);
      end(1);
    },
  });
  const { api, lab, kafka, database, key } = stack;
  process.stdout.write(`${JSON.stringify({ ready: true, api, lab, kafka: kafka.bootstrap, database, key })}\n`);
} catch (error) {
  fail(error);
}
