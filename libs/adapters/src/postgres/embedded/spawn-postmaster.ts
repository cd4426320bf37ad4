import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import type { Installation } from './cluster.js';
import { openLog } from './data-folder.js';
import { EmbeddedPostgresError } from './errors.js';
import { ExitWatch } from './exit-watch.js';
import { commandAs } from './os-user.js';
import { inspectProcess, type ProcessInfo } from './process-info.js';
import { DURABILITY } from './settings.js';

/** A server that was just started and is not yet known to work. */
export interface Spawned {
  readonly process: ProcessInfo;
  readonly watch: ExitWatch;
  /** Where in the log its lines begin. */
  readonly logStart: number;
}

/**
 * Starts the server in a session of its own, writing to the log in the data folder. It does not keep this process alive.
 *
 * @param deadPid id in `postmaster.pid`, known not to be a server on this folder any more. While the process table still has
 *   that id (a zombie, or a stranger who was given it), PostgreSQL would take it for a running server; told that it is its
 *   grandparent, it does not. The file stays, since it also leads PostgreSQL to the shared memory of the dead server, whose
 *   children may still be writing.
 */
export async function spawnPostmaster(installation: Installation, deadPid?: number): Promise<Spawned> {
  const { binaries, user, folder } = installation;
  const durability = Object.entries(DURABILITY).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const { file, args, options } = commandAs(user, binaries.postgres, ['-D', folder.cluster, ...durability]);
  const env = { ...options.env, ...(deadPid && { PG_GRANDPARENT_PID: String(deadPid) }) };
  const log = await openLog(folder);
  const child = spawn(file, args, { ...options, env, detached: true, stdio: ['ignore', log.fd, log.fd] });
  closeSync(log.fd);
  const watch = ExitWatch.ofChild(child);
  await once(child, 'spawn');
  child.unref();
  const pid = child.pid;
  if (pid === undefined) throw new EmbeddedPostgresError('start_failed', `${file} was started without a process id`);
  // One that has ended already is described by its id alone, which `hasEnded` of the watch goes before.
  const started = (await inspectProcess(pid)) ?? { pid, startedAt: '', command: '' };
  return { process: started, watch, logStart: log.size };
}
