// npm run faults [-- --point P] [--class C] [--variant V] [--occurrence N] [--aimed] [--parallel N] [--list]
import { parseArgs } from 'node:util';
import { aimedCases, allCases, type Case } from './cases.js';
import { DOOMED_PROCESSES } from './crash-points.js';
import type { Finding } from './judge.js';
import { FaultServer } from './server.js';

const USAGE = `Usage: npm run faults [-- OPTIONS]

  --process NAME   only where this process dies or suffers: standalone (all on one machine), or relay (needs Java 17 and Maven, or a Kafka
                   broker at KAFKA_BROKERS; else its cases are skipped, or with REQUIRE_KAFKA=true fail)
  --point P        only this crash point or fault (see --list)
  --class C        only this provider class: a, b, c, d, e or f
  --variant V      only this variant
  --occurrence N   die when the point is reached for the Nth time (initially 1)
  --aimed          the small matrix: each point once, with the class that it is aimed at, several points in a row
  --parallel N     cases at a time (initially 3)
  --list           print the names of the cases and run none

Kills real processes on a real PostgreSQL and a real Kafka broker, and holds what they recorded against the provider's own ledger. Progress on standard error; the
last line of standard output is a JSON summary. Exit code 1 where an effect happened twice, something acknowledged was lost, an invariant
was broken or a point was not reached.`;

/** A case mostly waits for times to pass, so more of them fit than there are cores. */
const PARALLEL_INITIAL = 3;
const PARALLEL_MAX = 16;

interface Options {
  readonly cases: readonly Case[];
  readonly parallel: number;
  readonly list: boolean;
}

class UsageFault extends Error {}

function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      ...{
        process: { type: 'string' },
        point: { type: 'string' },
        class: { type: 'string' },
        variant: { type: 'string' },
        occurrence: { type: 'string' },
      },
      ...{ parallel: { type: 'string' }, aimed: { type: 'boolean' }, list: { type: 'boolean' }, help: { type: 'boolean' } },
    },
  });
  if (values.help) throw new UsageFault('');
  const every = allCases(wholeNumber('--occurrence', values.occurrence ?? '1', 100_000));
  const all = values.aimed ? aimedCases() : every;
  for (const [flag, given, known] of [
    ['--process', values.process, DOOMED_PROCESSES],
    ['--point', values.point, all.map(({ point }) => point)],
    ['--class', values.class, all.map(({ labClass }) => labClass)],
    ['--variant', values.variant, all.map(({ variant }) => variant)],
  ] as const) {
    if (given !== undefined && !(known as readonly string[]).includes(given)) {
      throw new UsageFault(`${flag} ${given} is not known; known: ${[...new Set(known)].join(', ')}`);
    }
  }
  const matches = (wished: string | undefined, actual: string) => wished === undefined || wished === actual;
  const cases = all.filter(
    ({ process, point, labClass, variant }) =>
      matches(values.process, process) &&
      matches(values.point, point) &&
      matches(values.class, labClass) &&
      matches(values.variant, variant),
  );
  if (cases.length === 0) throw new UsageFault('no case matches; a point is only tried with the classes that can reach it (see --list)');
  return {
    cases,
    parallel: wholeNumber('--parallel', values.parallel ?? String(PARALLEL_INITIAL), PARALLEL_MAX),
    list: values.list ?? false,
  };
}

function wholeNumber(flag: string, text: string, max: number): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1 || number > max) throw new UsageFault(`${flag} must be a whole number from 1 to ${max}`);
  return number;
}

interface Summary {
  cases: number;
  operations: number;
  effects: number;
  duplicates: number;
  lost: number;
  violations: number;
  failing_cases: string[];
  skipped_cases: string[];
  seconds: number;
}

async function runAll({ cases, parallel }: Options): Promise<Summary> {
  const startedAt = performance.now();
  const summary: Summary = {
    ...{ cases: 0, operations: 0, effects: 0, duplicates: 0, lost: 0, violations: 0 },
    ...{ failing_cases: [], skipped_cases: [], seconds: 0 },
  };
  const server = await FaultServer.start();
  try {
    const waiting = [...cases];
    // Ended by hand: the cases under way are finished, so that neither processes nor a server are left behind.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        summary.failing_cases.push(`ended by ${signal} with ${waiting.length} cases to go`);
        waiting.length = 0;
      });
    }
    const workOff = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) await runOne(server, next, summary, cases.length);
    };
    await Promise.all(Array.from({ length: parallel }, workOff));
  } finally {
    await server.stop();
  }
  summary.seconds = Math.round((performance.now() - startedAt) / 100) / 10;
  return summary;
}

async function runOne(server: FaultServer, each: Case, summary: Summary, total: number): Promise<void> {
  const startedAt = performance.now();
  let findings: readonly Finding[];
  let skipped: string | undefined;
  try {
    const verdict = await each.run(server);
    summary.operations += verdict.operations;
    summary.effects += verdict.effects;
    ({ findings, skipped } = verdict);
  } catch (error) {
    // Also a point that was not reached: a case that proves nothing has failed.
    findings = [{ kind: 'violation', text: (error as Error).stack ?? String(error) }];
  }
  summary.cases++;
  for (const { kind } of findings) {
    if (kind === 'duplicate') summary.duplicates++;
    else if (kind === 'lost') summary.lost++;
    else summary.violations++;
  }
  if (findings.length > 0) summary.failing_cases.push(each.name);
  if (skipped) summary.skipped_cases.push(each.name);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stderr.write(
    `${summary.cases}/${total} ${findings.length > 0 ? 'FAIL' : skipped ? 'skip' : 'ok'} ${each.name} ${seconds} s${skipped ? `: ${skipped}` : ''}\n`,
  );
  for (const { kind, text } of findings) process.stderr.write(`  ${kind}: ${text}\n`);
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options.list) {
    process.stdout.write(`${options.cases.map(({ name }) => name).join('\n')}\n`);
  } else {
    const summary = await runAll(options);
    process.stdout.write(`${JSON.stringify(summary)}\n`);
    process.exitCode = summary.failing_cases.length > 0 ? 1 : 0;
  }
} catch (error) {
  const isUsage = error instanceof UsageFault || (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS') === true;
  if (!isUsage) throw error;
  const { message } = error as Error;
  process.stderr.write(`${message === '' ? '' : `onefold: ${message}\n`}${USAGE}\n`);
  process.exitCode = message === '' ? 0 : 2;
}
