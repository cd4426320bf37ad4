// npm run bench [-- --only NAME,...] [--n N] [--million]: prints one JSON line a scenario.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '#adapters/package-root.js';
import type { ClientJob, ClientResult } from './client.js';
import { cpuMs, rssMb, runClient, startProgram } from './processes.js';
import { storeOperations } from './store-operations.js';

interface Scenario {
  readonly name: string;
  readonly mode: ClientJob['mode'];
  readonly connections: number;
  readonly n: number;
  /** Against the same endpoint with nothing stored and nothing sent. */
  readonly storingNothing?: true;
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'submit', mode: 'submit', connections: 32, n: 20_000 },
  { name: 'submit-and-wait', mode: 'wait', connections: 32, n: 10_000 },
  { name: 'submit-and-wait-alone', mode: 'wait', connections: 1, n: 1_000 },
  { name: 'read', mode: 'read', connections: 32, n: 20_000 },
  { name: 'read-alone', mode: 'read', connections: 1, n: 2_000 },
  { name: 'store-nothing', mode: 'submit', connections: 32, n: 20_000, storingNothing: true },
];

/** The first operations pay for compiling and for empty caches; they are not what a server does all day. */
const WARM_UP = 2_000;
/** Nothing here takes minutes; a backlog that does not drain is a result of its own and ends the run. */
const EFFECTS_WAIT_MAX_MS = 120_000;
const MILLION = 1_000_000;
/** Planned, started, succeeded: what `storeOperations` stores of each. */
const EVENTS_PER_STORED_OPERATION = 3;
/** Twenty minutes: folding three million events into the view takes a few. */
const FEEDS_WAIT_MAX_MS = 1_200_000;
const KEY = 'bench-key-0123456789abcdef';

const program = (path: string) => join(packageRoot, 'dist', path);
const { values: options } = parseArgs({
  options: { only: { type: 'string' }, n: { type: 'string' }, million: { type: 'boolean', default: false }, stored: { type: 'string' } },
});

interface Target {
  readonly url: string;
  readonly labUrl: string;
  /** Processes whose processor time counts as the server's. */
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

async function main(): Promise<void> {
  const only = options.only?.split(',');
  const scenarios = SCENARIOS.filter(({ name }) => !only || only.includes(name));
  const stored = options.stored ? Number(options.stored) : options.million ? MILLION : 0;
  const folder = mkdtempSync(join(tmpdir(), 'onefold-bench-'));
  const target = await startServer(folder, stored);
  try {
    if (stored > 0) await feedsReach(target.url, stored * EVENTS_PER_STORED_OPERATION);
    let operationIds: readonly string[] = (
      await measure(target, { name: 'warm-up', mode: 'submit', connections: 32, n: WARM_UP }, [], false)
    ).operationIds;
    for (const scenario of scenarios.filter(({ storingNothing }) => !storingNothing)) {
      const result = await measure(target, scenario, operationIds, true, stored);
      if (result.operationIds.length > 0) operationIds = result.operationIds;
    }
  } finally {
    await target.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  for (const scenario of scenarios.filter(({ storingNothing }) => storingNothing)) {
    const nothing = await startStoringNothing();
    try {
      await measure(nothing, { ...scenario, n: WARM_UP }, [], false);
      await measure(nothing, scenario, [], true);
    } finally {
      await nothing.stop();
    }
  }
}

async function startServer(folder: string, stored: number): Promise<Target> {
  const lab = await startProgram(program('apps/provider-lab/src/main.js'), { LAB_PORT: '0', LAB_SMTP_PORT: '0', LAB_LEDGER: 'memory' });
  const labUrl = String(lab.ready['lab']);
  const env = {
    ONEFOLD_DATA_DIR: folder,
    ONEFOLD_API_KEYS: `${KEY}:bench:admin`,
    ONEFOLD_LOG_LEVEL: 'warn',
    LAB_URL: labUrl,
    SMTP_URL: `smtp://${String(lab.ready['smtp'])}`,
    PORT: '0',
  };
  if (stored > 0) await storeOperations(folder, stored);
  const server = await startProgram(program('apps/standalone/src/main.js'), env);
  const postmaster = Number(readFileSync(join(folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0]);
  return {
    url: String(server.ready['api']),
    labUrl,
    pids: [server.child.pid!, postmaster],
    stop: async () => {
      await server.stop();
      await lab.stop();
    },
  };
}

async function startStoringNothing(): Promise<Target> {
  const server = await startProgram(program('bench/store-nothing.js'), { BENCH_KEY: KEY });
  return { url: String(server.ready['api']), labUrl: '', pids: [server.child.pid!], stop: () => server.stop() };
}

interface Ledger {
  readonly effects: number;
  readonly references: number;
}

async function ledger(labUrl: string): Promise<Ledger> {
  if (labUrl === '') return { effects: 0, references: 0 };
  return (await (await fetch(`${labUrl}/lab/ledger`)).json()) as Ledger;
}

async function measure(
  target: Target,
  scenario: Scenario,
  operationIds: readonly string[],
  print: boolean,
  stored = 0,
): Promise<ClientResult> {
  const { name, mode, connections } = scenario;
  const n = print && options.n ? Number(options.n) : scenario.n;
  const run = `${name}-${process.pid}-${Math.floor(performance.now())}`;
  const before = await ledger(target.labUrl);
  const cpuBefore = cpuMs(target.pids);
  const startedAt = performance.now();
  const job: ClientJob = { url: target.url, key: KEY, n, connections, mode, run };
  const result = await runClient<ClientResult>(program('bench/client.js'), { job, operationIds });
  const planned = mode === 'read' || target.labUrl === '' ? 0 : n;
  const after = await effectsReach(target.labUrl, before.effects + planned);
  const seconds = (performance.now() - startedAt) / 1000;
  const cpuAfter = cpuMs(target.pids);
  const effects = after.effects - before.effects;
  if (!print) return result;
  const line = {
    scenario: name,
    n,
    connections,
    accept_per_s: Math.round(n / result.seconds),
    effect_per_s: planned === 0 ? null : Math.round(effects / seconds),
    p50_ms: round(result.p50Ms),
    p99_ms: round(result.p99Ms),
    cpu_ms_per_op: cpuBefore === null || cpuAfter === null ? null : round((cpuAfter - cpuBefore) / n),
    rss_mb: round(rssMb(target.pids[0]!)),
    effects,
    duplicates: effects - (after.references - before.references),
    statuses: result.statuses,
    ...(stored > 0 && { stored }),
  };
  console.log(JSON.stringify(line));
  return result;
}

/** What was stored beforehand has to be in the view and out of the way before anything is measured. */
async function feedsReach(url: string, position: number): Promise<void> {
  const giveUpAt = performance.now() + FEEDS_WAIT_MAX_MS;
  for (;;) {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const positions = [...metrics.matchAll(/^onefold_feed_position\{.*\} (\d+)$/gm)].map((match) => Number(match[1]));
    if (positions.length === 2 && positions.every((reached) => reached >= position)) return;
    if (performance.now() > giveUpAt) throw new Error('The feeds did not catch up with the stored operations.');
    console.error(`bench: the view has taken ${Math.min(...positions, position)} of ${position} events`);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
  }
}

async function effectsReach(labUrl: string, wanted: number): Promise<Ledger> {
  const giveUpAt = performance.now() + EFFECTS_WAIT_MAX_MS;
  for (;;) {
    const now = await ledger(labUrl);
    if (now.effects >= wanted || performance.now() > giveUpAt) return now;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function round(value: number | null): number | null {
  return value === null ? null : Math.round(value * 100) / 100;
}

await main();
