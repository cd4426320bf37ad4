import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Installation } from './cluster.js';
import type { DataFolder } from './data-folder.js';
import { EmbeddedPostgresError, systemErrorCode } from './errors.js';
import { readIfExists } from './files.js';
import { commandAs } from './os-user.js';
import { inspectProcess, isAlive, type ProcessInfo } from './process-info.js';
import { runProgram } from './run-program.js';

/** A server (its first process) that runs on our cluster. */
export interface Postmaster extends ProcessInfo {
  readonly port: number;
}

/**
 * What `postmaster.pid` leads to. `stale`: the server is dead, though its id may still be in the process table, because nobody
 * has collected it (zombie) or because another process was given the same id.
 */
export type Found = { kind: 'none' } | { kind: 'stale'; pid: number } | { kind: 'running'; pid: number; postmaster: Postmaster };

/**
 * Reads `postmaster.pid` and believes it only if the process is alive, is postgres, and runs on this very folder. `pg_ctl
 * status` would ask no more than whether some process has that id.
 */
export async function findPostmaster(folder: DataFolder): Promise<Found> {
  const text = await readIfExists(join(folder.cluster, 'postmaster.pid'));
  if (text === undefined) return { kind: 'none' };
  // Lines: process id, data directory, start time, port, socket directory, address, shared memory key, status.
  const lines = text.split(/\r?\n/);
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  const found = await inspectProcess(pid);
  if (!found || !(await runsOn(folder, found))) return { kind: 'stale', pid };
  return { kind: 'running', pid, postmaster: { ...found, port } };
}

async function runsOn(folder: DataFolder, found: ProcessInfo): Promise<boolean> {
  if (!/(^|[/\\])postgres(\.exe)?(\s|$)/.test(found.command)) return false;
  if (`${found.command} `.includes(` -D ${folder.cluster} `)) return true;
  if (process.platform !== 'linux') return false;
  // The folder may have been moved under the running server, whose working directory moves with it.
  return readlink(`/proc/${found.pid}/cwd`).then(
    (cwd) => cwd === folder.cluster,
    (error: unknown) => {
      // Closed to us: then it is not a process of our user, and so none of ours.
      if (['EACCES', 'EPERM', 'ENOENT', 'ESRCH'].includes(systemErrorCode(error) ?? '')) return false;
      throw error;
    },
  );
}

/** How often a look at a process table or a connection attempt is repeated: below what a person notices, above what costs. */
export const POLL_INTERVAL_MS = 50;

/** `immediate` waits 5 s itself before PostgreSQL kills its own children; the rest is for a machine under load. */
const IMMEDIATE_SECONDS = 15;
/** After SIGKILL only the kernel has work left. */
const KILL_WAIT_MS = 5000;

/**
 * Stops the server: `fast` ends sessions and writes a checkpoint; if that takes longer than `fastSeconds`, `immediate`, and at
 * last SIGKILL. After either of the latter the next start recovers from the write-ahead log; nothing acknowledged is lost.
 */
export async function stopPostmaster(installation: Installation, postmaster: ProcessInfo, fastSeconds: number): Promise<void> {
  const { binaries, user, folder } = installation;
  for (const [mode, seconds] of [['fast', fastSeconds] as const, ['immediate', IMMEDIATE_SECONDS] as const]) {
    if (!(await isAlive(postmaster))) return;
    const args = ['stop', '-D', folder.cluster, '-w', '-t', String(seconds), '-m', mode];
    // pg_ctl keeps its own time; ours is the fence behind it.
    await runProgram(commandAs(user, binaries.pgCtl, args), { timeoutMs: (seconds + 5) * 1000 });
  }
  if (!(await isAlive(postmaster))) return;
  process.kill(postmaster.pid, 'SIGKILL');
  if (await isGoneWithin(postmaster, KILL_WAIT_MS)) return;
  throw new EmbeddedPostgresError(
    'stop_failed',
    `PostgreSQL (process ${postmaster.pid}) on ${folder.cluster} cannot be stopped, not even with SIGKILL`,
  );
}

async function isGoneWithin(postmaster: ProcessInfo, waitMs: number): Promise<boolean> {
  for (const until = Date.now() + waitMs; Date.now() < until;) {
    if (!(await isAlive(postmaster))) return true;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
  return !(await isAlive(postmaster));
}
