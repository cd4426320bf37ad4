import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Starts a program of the build and waits for the first JSON line on its standard output. */
export async function startProgram(
  program: string,
  env: Record<string, string>,
  args: readonly string[] = [],
): Promise<{ child: ChildProcess; ready: Record<string, unknown>; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [program, ...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const lines = createInterface({ input: child.stdout });
  const ready = await new Promise<Record<string, unknown>>((resolve, reject) => {
    lines.on('line', (line) => {
      if (line.startsWith('{"ready"')) resolve(JSON.parse(line) as Record<string, unknown>);
    });
    void exited.then((code) => reject(new Error(`${program} ended with ${code} before it was ready`)));
  });
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
  };
  return { child, ready, stop };
}

/** Sends one job to a client process and reads its answer. */
export async function runClient<T>(program: string, input: unknown): Promise<T> {
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(input));
  let output = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) output += chunk as string;
  return JSON.parse(output) as T;
}

/** The kernel counts processor time in hundredths of a second on every platform that Node's Linux builds run on. */
const TICK_MS = 10;

/** Processor time in ms of processes and of all that descends from them, ended ones included; null where there is no /proc. */
export function cpuMs(roots: readonly number[]): number | null {
  const all = readProcesses();
  if (all === null) return null;
  let total = 0;
  const add = (pid: number) => {
    const process = all.get(pid);
    if (!process) return;
    total += process.ticks + process.reapedTicks;
    for (const [child, { parent }] of all) if (parent === pid) add(child);
  };
  for (const root of roots) add(root);
  return total * TICK_MS;
}

/** Resident memory of one process in MB; null where there is no /proc. */
export function rssMb(pid: number): number | null {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return null; // No such file: not Linux, or the process has ended.
  }
}

function readProcesses(): Map<number, { parent: number; ticks: number; reapedTicks: number }> | null {
  let entries: string[];
  try {
    entries = readdirSync('/proc');
  } catch {
    return null; // No such folder: not Linux.
  }
  const found = new Map<number, { parent: number; ticks: number; reapedTicks: number }>();
  for (const pid of entries.filter((entry) => /^\d+$/.test(entry))) {
    try {
      // Fields after the command's closing parenthesis (proc(5)): state, ppid, ..., utime (14), stime, cutime, cstime.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
      const ticks = Number(fields[11]) + Number(fields[12]);
      found.set(Number(pid), { parent: Number(fields[1]), ticks, reapedTicks: Number(fields[13]) + Number(fields[14]) });
    } catch {
      // It ended while the list was read.
    }
  }
  return found;
}
