import { randomBytes } from 'node:crypto';
import { constants, openSync } from 'node:fs';
import { access, chmod, mkdir, open, realpath, stat, truncate, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { EmbeddedPostgresError, systemErrorCode } from './errors.js';
import { readIfExists, writeAtomically } from './files.js';
import { describeOsUser, type ServerUser } from './os-user.js';

/** Where the embedded PostgreSQL keeps things, all absolute and without symbolic links. */
export interface DataFolder {
  readonly root: string;
  readonly cluster: string;
  readonly password: string;
  readonly log: string;
}

/** A log above this is emptied at start. What we let PostgreSQL log (starts, checkpoints, crashes) needs months for it. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;

/** Makes the folder if it is missing. */
export async function openDataFolder(dataDir: string): Promise<DataFolder> {
  // Root hands the cluster to another user, who must be able to pass.
  await mkdir(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  const root = await realpath(dataDir);
  return { root, cluster: join(root, 'postgres'), password: join(root, 'postgres-password'), log: join(root, 'postgres.log') };
}

/** Root only: lets the server's user pass the data folder (not list it). Folders above are never touched. */
export async function openForPassage(folder: DataFolder, user: ServerUser): Promise<void> {
  if (user.kind === 'self') return;
  const { mode } = await stat(folder.root);
  if ((mode & 0o001) === 0) await chmod(folder.root, (mode & 0o7777) | 0o001);
}

/** Says clearly when the folder was last used by somebody else, rather than fail later with "permission denied". */
export async function assertOwnFolder(folder: DataFolder, user: ServerUser): Promise<void> {
  const me = process.getuid?.();
  if (me === undefined) return;
  const owner = await clusterOwner(folder);
  if (owner !== undefined && owner !== user.uid) throw await foreign(folder, folder.cluster, owner, user.uid ?? me);
  for (const file of [folder.root, folder.password, folder.log, join(folder.root, 'owner.json')]) {
    if (await isRefused(file)) throw await foreign(folder, file, (await ownerOf(file)) ?? 0, me);
  }
}

async function foreign(folder: DataFolder, file: string, ownerUid: number, neededUid: number): Promise<EmbeddedPostgresError> {
  const [owner, needed] = [await describeOsUser(ownerUid), await describeOsUser(neededUid)];
  return new EmbeddedPostgresError(
    'data_folder_foreign',
    `data folder ${folder.root} was last used by another OS user: ${file} belongs to ${owner} and is needed by ${needed}; ` +
      'start as the user that used it before, change the owner of that folder and of everything in it (chown -R), or set ONEFOLD_DATA_DIR',
  );
}

/** The owner of the cluster's first file; of its folder if that is closed to us; undefined if there is no cluster. */
async function clusterOwner(folder: DataFolder): Promise<number | undefined> {
  try {
    return (await stat(join(folder.cluster, 'PG_VERSION'))).uid;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EACCES') return ownerOf(folder.cluster);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

async function ownerOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).uid;
  } catch (error) {
    // EACCES: the folder around it is closed to us, which the check of that folder reports.
    if (['ENOENT', 'EACCES'].includes(systemErrorCode(error) ?? '')) return undefined;
    throw error;
  }
}

async function isRefused(path: string): Promise<boolean> {
  try {
    await access(path, constants.R_OK | constants.W_OK);
    return false;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return false;
    if (code === 'EACCES' || code === 'EPERM') return true;
    throw error;
  }
}

/** The database password kept in the folder, undefined when there is none. */
export async function readPassword(folder: DataFolder): Promise<string | undefined> {
  return (await readIfExists(folder.password))?.trim() || undefined;
}

/** Makes a new password and keeps it, readable by the owner only. Letters and digits, so it fits into SQL and a URL as it is. */
export async function makePassword(folder: DataFolder): Promise<string> {
  const password = randomBytes(24).toString('hex');
  await writeAtomically(folder.password, `${password}\n`, 0o600);
  return password;
}

/** Opens the server's log for appending; the descriptor is for the server, the size is where its new lines begin. */
export async function openLog(folder: DataFolder): Promise<{ fd: number; size: number }> {
  const fd = openSync(folder.log, 'a', 0o600);
  const { size } = await stat(folder.log);
  if (size <= LOG_BYTES_MAX) return { fd, size };
  await truncate(folder.log);
  return { fd, size: 0 };
}

/** Enough for a failed start, short enough for an error message. */
const TAIL_BYTES_MAX = 3000;

/** What the server logged since `from`, at most its last 3000 bytes. */
export async function readLogTail(folder: DataFolder, from: number): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder.log, 'r');
    const { size } = await handle.stat();
    const start = Math.max(from, size - TAIL_BYTES_MAX);
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(Math.max(size - start, 1)), position: start });
    return buffer.toString('utf8', 0, bytesRead).trim();
  } finally {
    await handle?.close();
  }
}
