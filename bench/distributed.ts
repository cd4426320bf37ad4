// npm run bench -- --distributed [--n N]: the separate services on a real broker, one of each; one JSON line a scenario.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '#adapters/package-root.js';
import { startStack, type ServiceProcess, type Stack } from '../stack/stack.js';
import type { ClientJob, ClientResult } from './client.js';
import { runClient } from './processes.js';

/** The first operations pay for compiling and for empty caches. */
const WARM_UP = 1_000;
const CONNECTIONS = 32;
/** A backlog that does not drain is a result of its own and ends the run. */
const WAIT_MAX_MS = 180_000;
const LOOK_EVERY_MS = 20;

const { values: options } = parseArgs({ options: { distributed: { type: 'boolean' }, n: { type: 'string', default: '20000' } } });
const n = Number(options.n);
if (!Number.isInteger(n) || n < 1) throw new RangeError('--n must be a whole number from 1.');

async function main(): Promise<void> {
  const instances = { 'command-api': 1, relay: 1, dispatcher: 1, projector: 1 };
  const env = { 'provider-lab': { LAB_LEDGER: 'memory' }, all: { ONEFOLD_LOG_LEVEL: 'warn' } };
  const stack = await startStack({ instances, env, onProgress: (text) => console.error(`bench: ${text}`) });
  try {
    await effectsThroughKafka(stack, WARM_UP, false);
    await effectsThroughKafka(stack, n, true);
    await relayBacklog(stack, n);
  } finally {
    await stack.stop();
  }
}

function submit(stack: Stack, count: number, run: string): Promise<ClientResult> {
  const job: ClientJob = { url: stack.api[0]!, key: stack.key, n: count, connections: CONNECTIONS, mode: 'submit', run };
  return runClient<ClientResult>(join(packageRoot, 'dist/bench/client.js'), { job, operationIds: [] });
}

async function effectsThroughKafka(stack: Stack, count: number, print: boolean): Promise<void> {
  const before = await ledger(stack);
  const startedAt = performance.now();
  const { seconds, p50Ms, p99Ms } = await submit(stack, count, `effects-${count}`);
  const after = await until(
    () => ledger(stack),
    ({ effects }) => effects >= before.effects + count,
  );
  const effectPerS = Math.round((count / (performance.now() - startedAt)) * 1_000);
  const duplicates = after.effects - before.effects - (after.references - before.references);
  const line = { scenario: 'effects-through-kafka', n: count, connections: CONNECTIONS, accept_per_s: Math.round(count / seconds) };
  if (print) console.log(JSON.stringify({ ...line, effect_per_s: effectPerS, p50_ms: p50Ms, p99_ms: p99Ms, duplicates }));
}

/** What was planned while no relay ran; with only the relay at work, from its first published page to the last. */
async function relayBacklog(stack: Stack, count: number): Promise<void> {
  const [relay, ...others] = ['relay', 'dispatcher', 'projector'].map((name) => stack.services.find((service) => service.name === name)!);
  await Promise.all([relay!, ...others].map((service) => service.stop()));
  await submit(stack, count, 'backlog');
  await relay!.start();
  const first = await until(
    () => published(relay!),
    (events) => events > 0,
  );
  const startedAt = performance.now();
  const last = await until(
    () => published(relay!),
    (events) => events >= count,
  );
  const eventsPerS = Math.round(((last - first) / (performance.now() - startedAt)) * 1_000);
  console.log(JSON.stringify({ scenario: 'relay-backlog', n: count, events_per_s: eventsPerS }));
}

async function published(relay: ServiceProcess): Promise<number> {
  const text = await (await fetch(`${relay.url}/metrics`)).text();
  return Number(/^onefold_relay_published_total (\d+)$/m.exec(text)?.[1] ?? 0);
}

async function ledger(stack: Stack): Promise<{ readonly effects: number; readonly references: number }> {
  return (await (await fetch(`${stack.lab}/lab/ledger`)).json()) as { effects: number; references: number };
}

async function until<T>(ask: () => Promise<T>, wished: (answer: T) => boolean): Promise<T> {
  const giveUpAt = performance.now() + WAIT_MAX_MS;
  for (;;) {
    const answer = await ask();
    if (wished(answer)) return answer;
    if (performance.now() > giveUpAt) throw new Error('What was submitted did not come through in time.');
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

await main();
