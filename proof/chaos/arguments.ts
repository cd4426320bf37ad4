import { parseArgs } from 'node:util';

export interface ChaosArguments {
  readonly operations: number;
  /** For how long operations are submitted and things are broken; the time until everything has settled comes on top. */
  readonly minutes: number;
  /** Decides what is broken when, and how the provider treats which operation; the processes stay as unforeseeable as they are. */
  readonly seed: number;
}

export const USAGE = `Usage: npm run chaos [-- --operations N] [--minutes M] [--seed K]

  --operations N   how many operations to submit, 1 to 200000 (initially 1000)
  --minutes M      for how long, 0.5 to 240 (initially 2); what has not been submitted by then is left out
  --seed K         decides what is broken when (initially another one each time, which the summary names)

Two of each service, three Kafka brokers, PostgreSQL and the provider lab on this machine, with a proxy in every way between them. Needs
Java 17 and Maven. Progress on standard error; the last line of standard output is a JSON summary. Exit code 1 where an effect happened
twice, something acknowledged was lost, an invariant was broken, or not everything settled in time.`;

const OPERATIONS = { initial: 1_000, min: 1, max: 200_000 };
const MINUTES = { initial: 2, min: 0.5, max: 240 };
const SEED_MAX = 2 ** 32 - 1;

/** What is wrong with the arguments; the message names flag and rule, and is empty where only help was asked for. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** @throws UsageError */
export function readArguments(args: readonly string[], seedInitial: number): ChaosArguments {
  const { operations, minutes, seed, help } = flagsOf(args);
  if (help) throw new UsageError('');
  return {
    operations: numberOf('--operations', operations, OPERATIONS, /^\d+$/),
    minutes: numberOf('--minutes', minutes, MINUTES, /^\d+(?:\.\d+)?$/),
    seed: numberOf('--seed', seed, { initial: seedInitial, min: 0, max: SEED_MAX }, /^\d+$/),
  };
}

function flagsOf(args: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    const options = { operations: text, minutes: text, seed: text, help: { type: 'boolean' } } as const;
    return parseArgs({ args: [...args], options, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function numberOf(flag: string, text: string | undefined, range: { initial: number; min: number; max: number }, form: RegExp): number {
  if (text === undefined) return range.initial;
  const value = Number(text);
  if (form.test(text) && value >= range.min && value <= range.max) return value;
  throw new UsageError(`${flag} takes numbers from ${range.min} to ${range.max}, not "${text}".`);
}
