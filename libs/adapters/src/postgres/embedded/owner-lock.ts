import { randomUUID } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { EmbeddedPostgresError, systemErrorCode } from './errors.js';
import { inspectProcess, isAlive } from './process-info.js';

/** The right to run PostgreSQL on a data folder. One process has it at a time; it ends with that process. */
export interface OwnerLock {
  /** Throws when another process has taken the folder meanwhile (possible only where there is no kernel lock). */
  confirm(): Promise<void>;
  release(): Promise<void>;
}

/** Content of `owner.json`; an empty file means that nobody owns the folder. */
interface Owner {
  readonly pid: number;
  readonly processStartedAt: string;
  readonly token: string;
}

/**
 * Two things guard the folder. The kernel's lock on the open `owner.json` (Linux, through `flock`) is exact, also between
 * containers that share the folder but not their process ids. The process named in the file tells a person who it is, and is
 * the guard where there is no `flock`: there, two starts in the same instant are told apart by `confirm`.
 *
 * The file is never removed: a lock belongs to the file it was taken on, and a second file could be locked by a second owner.
 */
export async function takeOwnerLock(dataDir: string): Promise<OwnerLock> {
  const file = join(dataDir, 'owner.json');
  // A plain descriptor, since a FileHandle that is garbage collected would close the file and lose the lock.
  const fd = openSync(file, 'a+', 0o644);
  try {
    const kernelLock = await lockInKernel(fd);
    const former = await readOwner(file);
    if (kernelLock === 'taken' || (former && (await isOwnerAlive(former)))) throw inUse(dataDir, former);
    const mine = await describeThisProcess();
    await writeFile(file, `${JSON.stringify(mine)}\n`);
    return {
      confirm: async () => {
        const owner = await readOwner(file);
        if (owner?.token !== mine.token) throw inUse(dataDir, owner);
      },
      release: async () => {
        if ((await readOwner(file))?.token === mine.token) await writeFile(file, '');
        closeSync(fd);
      },
    };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function inUse(dataDir: string, owner: Owner | undefined): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'data_folder_in_use',
    `data folder ${dataDir} is in use by process ${owner?.pid ?? '(just starting)'}; stop it or set ONEFOLD_DATA_DIR`,
  );
}

/**
 * `flock` locks the open file behind descriptor 3, which is ours too: the lock stays when `flock` ends and goes when this
 * process ends, however it ends. Children do not inherit the descriptor.
 */
function lockInKernel(fd: number): Promise<'held' | 'taken' | 'unavailable'> {
  if (process.platform !== 'linux') return Promise.resolve('unavailable');
  return new Promise((resolve, reject) => {
    const flock = spawn('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
    flock.once('error', (error) => (systemErrorCode(error) === 'ENOENT' ? resolve('unavailable') : reject(error)));
    // 1 is "somebody else has it"; anything else is a file system without locks.
    flock.once('close', (code) => resolve(code === 0 ? 'held' : code === 1 ? 'taken' : 'unavailable'));
  });
}

async function readOwner(file: string): Promise<Owner | undefined> {
  const text = await readFile(file, 'utf8');
  try {
    const { pid, processStartedAt, token } = JSON.parse(text) as Partial<Owner>;
    return typeof pid === 'number' && processStartedAt && token ? { pid, processStartedAt, token } : undefined;
  } catch (error) {
    // Empty after a release, or cut by a crash in the middle of writing: no owner either way.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

async function isOwnerAlive(owner: Owner): Promise<boolean> {
  return isAlive({ pid: owner.pid, startedAt: owner.processStartedAt, command: '' });
}

async function describeThisProcess(): Promise<Owner> {
  const self = await inspectProcess(process.pid);
  if (!self) throw new EmbeddedPostgresError('start_failed', `the system does not list this process (${process.pid}); is /proc mounted?`);
  return { pid: self.pid, processStartedAt: self.startedAt, token: randomUUID() };
}
