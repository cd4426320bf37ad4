import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

const PROGRAM = new URL('../../../dist/proof/faults/main.js', import.meta.url).pathname;

export interface Summary {
  readonly cases: number;
  readonly operations: number;
  readonly effects: number;
  readonly duplicates: number;
  readonly lost: number;
  readonly violations: number;
  readonly failing_cases: readonly string[];
  readonly skipped_cases: readonly string[];
}

export interface FaultRun {
  readonly code: number | null;
  readonly progress: string;
  /** The last line of its output, where that is a summary. */
  readonly summary: Summary | null;
  /** The crash points of the cases that were run and were in order. */
  readonly pointsPassed: ReadonlySet<string>;
}

/** Runs the program as `npm run faults` does. */
export async function runFaults(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<FaultRun> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const [output, progress] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  const lastLine = output.trimEnd().split('\n').at(-1)!;
  return {
    ...{ code: child.exitCode, progress },
    summary: lastLine.startsWith('{') ? (JSON.parse(lastLine) as Summary) : null,
    pointsPassed: new Set([...progress.matchAll(/^\d+\/\d+ ok (\S+) /gm)].flatMap(([, point]) => point!.split('>'))),
  };
}
