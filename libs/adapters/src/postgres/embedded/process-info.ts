import { readFile } from 'node:fs/promises';
import { EmbeddedPostgresError, systemErrorCode } from './errors.js';
import { runProgram } from './run-program.js';

/** A living process. Process ids are used again, so only `pid` together with `startedAt` names one. */
export interface ProcessInfo {
  readonly pid: number;
  /** When it started, in whatever form the system tells it; compare for equality only. */
  readonly startedAt: string;
  /** Program and arguments, without quotes. */
  readonly command: string;
}

/** The process with this id, undefined when there is none or it has ended and only waits to be collected (zombie). */
export async function inspectProcess(pid: number): Promise<ProcessInfo | undefined> {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  if (process.platform === 'linux') return inspectLinux(pid);
  return process.platform === 'win32' ? inspectWindows(pid) : inspectWithPs(pid);
}

/** Whether this very process, not a later one with the same id, is still there. */
export async function isAlive(known: ProcessInfo): Promise<boolean> {
  return (await inspectProcess(known.pid))?.startedAt === known.startedAt;
}

async function inspectLinux(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8');
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    // The name in parentheses may hold anything; proc(5) numbers the fields behind it from 3 (state), start time is 22.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return { pid, startedAt: `${boot.trim()}/${fields[22 - 3]}`, command: command.split('\0').join(' ').trim() };
  } catch (error) {
    // ESRCH: it ended between opening and reading.
    if (['ENOENT', 'ESRCH'].includes(systemErrorCode(error) ?? '')) return undefined;
    throw error;
  }
}

/** The system answers at once; a minute of silence would only hide that it does not. */
const INSPECT_TIMEOUT_MS = 10_000;

async function inspectWithPs(pid: number): Promise<ProcessInfo | undefined> {
  const args = ['-o', 'state=,lstart=,command=', '-p', String(pid)];
  const { code, output } = await runProgram(
    { file: 'ps', args, options: { env: { PATH: process.env['PATH'], LC_ALL: 'C' } } },
    { timeoutMs: INSPECT_TIMEOUT_MS },
  );
  if (code === 1 && output === '') return undefined;
  // State, then a date of five words ("Mon Nov 29 23:05:12 2026"), then the command.
  const found = /^(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/s.exec(output);
  if (!found) throw new EmbeddedPostgresError('start_failed', `cannot tell whether process ${pid} is running: ps answered ${output}`);
  return found[1]!.startsWith('Z') ? undefined : { pid, startedAt: found[2]!, command: found[3]! };
}

async function inspectWindows(pid: number): Promise<ProcessInfo | undefined> {
  const script = `Get-CimInstance Win32_Process -Filter "ProcessId=${pid}" | % { $_.CreationDate.ToFileTimeUtc().ToString() + ' ' + $_.CommandLine }`;
  const { code, output } = await runProgram(
    { file: 'powershell', args: ['-NoProfile', '-NonInteractive', '-Command', script], options: { windowsHide: true } },
    { timeoutMs: INSPECT_TIMEOUT_MS },
  );
  if (code !== 0) throw new EmbeddedPostgresError('start_failed', `cannot tell whether process ${pid} is running: ${output}`);
  const found = /^(\d+) ?(.*)$/s.exec(output);
  return found ? { pid, startedAt: found[1]!, command: found[2]!.replaceAll('"', '') } : undefined;
}
