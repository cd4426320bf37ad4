import type { Parts } from './parts.js';
import type { Scenario, Step } from './scenario.js';
import { simulate, type RunResult } from './simulation.js';

/** Each run takes tens of milliseconds; with so many a trace is short enough to be read, or will not become so. */
const RUNS_MAX = 300;

export interface Shrunk {
  readonly result: RunResult;
  /** Numbers of the steps that are left, as `--steps` takes them. */
  readonly kept: readonly number[];
}

/** Only some of a scenario's steps. */
export function withSteps(scenario: Scenario, kept: readonly number[]): Scenario {
  return { ...scenario, steps: kept.map((index) => scenario.steps[index]).filter((step): step is Step => step !== undefined) };
}

/**
 * Leaves out steps for as long as the same invariant is still broken: halves first, then ever smaller parts (delta debugging, Zeller and
 * Hildebrandt 2002).
 */
export async function shrink(scenario: Scenario, found: RunResult, parts?: Parts): Promise<Shrunk> {
  const wanted = new Set(found.report.violations.map(({ invariant }) => invariant));
  let best: Shrunk = { result: found, kept: scenario.steps.map((_, index) => index) };
  let runs = 0;
  for (let size = Math.ceil(best.kept.length / 2); size >= 1 && runs < RUNS_MAX;) {
    let isSmaller = false;
    for (let from = 0; from < best.kept.length && runs < RUNS_MAX;) {
      const kept = [...best.kept.slice(0, from), ...best.kept.slice(from + size)];
      runs++;
      const result = await simulate(withSteps(scenario, kept), parts);
      if (result.report.violations.some(({ invariant }) => wanted.has(invariant))) {
        best = { result, kept };
        isSmaller = true;
      } else from += size;
    }
    if (size === 1 && !isSmaller) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return best;
}
