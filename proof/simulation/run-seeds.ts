import { printViolation } from '../checker/check-invariants.js';
import type { SimulationArguments } from './arguments.js';
import type { Parts } from './parts.js';
import { describeStep, scenarioOf } from './scenario.js';
import { shrink, withSteps, type Shrunk } from './shrink.js';
import { simulate, type RunResult } from './simulation.js';

export interface Summary {
  readonly seeds: number;
  readonly operations: number;
  readonly effects: number;
  readonly duplicates: number;
  readonly lost: number;
  readonly violations: number;
  readonly failing_seeds: readonly number[];
  readonly seconds: number;
}

/** Shrinking takes seconds, and one short trace is read first: the other failing seeds are only named. */
const SHRUNK_MAX = 3;
/** Seeds named in the summary at most. */
const FAILING_MAX = 100;

/** Runs the seeds and prints what is broken; a single seed is told in full. */
export async function runSeeds(
  { seeds, seed, steps }: SimulationArguments,
  print: (line: string) => void,
  parts?: Parts,
): Promise<Summary> {
  const startedAt = performance.now();
  const total = { operations: 0, effects: 0, duplicates: 0, lost: 0, violations: 0 };
  const failing: number[] = [];
  for (let current = seed; current < seed + seeds; current++) {
    const all = scenarioOf(current);
    const scenario = steps === null ? all : withSteps(all, steps);
    const result = await simulate(scenario, parts);
    total.operations += result.operations;
    total.effects += result.effects;
    total.duplicates += result.duplicates;
    total.lost += result.lost;
    total.violations += result.report.violations.length;
    if (seeds === 1) printRun(result, print);
    if (result.report.violations.length === 0) continue;
    failing.push(current);
    if (steps === null && failing.length <= SHRUNK_MAX) printShrunk(current, await shrink(scenario, result, parts), print);
  }
  const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(2));
  return { seeds, ...total, failing_seeds: failing.slice(0, FAILING_MAX), seconds };
}

function printRun({ scenario, trace, report }: RunResult, print: (line: string) => void): void {
  scenario.steps.forEach((step, index) => print(`step ${index}: ${describeStep(step)}`));
  trace.forEach(print);
  for (const violation of report.violations) print(printViolation(violation));
  for (const { invariant, missing } of report.notChecked) print(`not checked: ${invariant} (no ${missing.join(', ')})`);
}

function printShrunk(seed: number, { result, kept }: Shrunk, print: (line: string) => void): void {
  print(`seed ${seed} breaks ${[...new Set(result.report.violations.map(({ invariant }) => invariant))].join(', ')}`);
  print(`  again:    npm run sim -- --seed ${seed}`);
  print(`  shortest: npm run sim -- --seed ${seed} --steps ${kept.join(',')}`);
  result.trace.forEach((line) => print(`  ${line}`));
  for (const violation of result.report.violations) print(printViolation(violation));
}
