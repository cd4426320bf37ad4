import { parseArgs } from 'node:util';

export interface SimulationArguments {
  readonly seeds: number;
  /** The first one. */
  readonly seed: number;
  /** Of a single seed: numbers of the steps to keep; null for all. */
  readonly steps: readonly number[] | null;
}

export const USAGE = `usage: npm run sim -- [--seeds N] [--seed K] [--steps 3,7,9]
  --seeds N   how many seeds to run, 1 to 1000000 (100 when left out, 1 with --seed)
  --seed K    the first seed, 0 to 4294967295 (1 when left out); alone it replays one run and prints its trace
  --steps L   with one seed: keep only these steps of it, as a failing run prints them`;

const SEEDS_MAX = 1_000_000;
const SEED_MAX = 2 ** 32 - 1;

/** What is wrong with the arguments; the message names flag, rule and way out. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** @throws UsageError */
export function readArguments(args: readonly string[]): SimulationArguments {
  const { seeds, seed, steps } = flagsOf(args);
  const count = seeds === undefined ? (seed === undefined ? 100 : 1) : integerOf('--seeds', seeds, 1, SEEDS_MAX);
  const first = seed === undefined ? 1 : integerOf('--seed', seed, 0, SEED_MAX);
  if (steps !== undefined && (seed === undefined || count !== 1))
    throw new UsageError('--steps belongs to one run: give --seed, and no --seeds.');
  const kept =
    steps === undefined
      ? null
      : steps
          .split(',')
          .filter((text) => text !== '')
          .map((text) => integerOf('--steps', text, 0, SEED_MAX));
  return { seeds: count, seed: first, steps: kept };
}

function flagsOf(args: readonly string[]) {
  try {
    const options = { seeds: { type: 'string' }, seed: { type: 'string' }, steps: { type: 'string' } } as const;
    return parseArgs({ args: [...args], options, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function integerOf(flag: string, text: string, low: number, high: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < low || value > high)
    throw new UsageError(`${flag} takes whole numbers from ${low} to ${high}, not "${text}".`);
  return value;
}
