import { randomBytes } from 'node:crypto';
import { appendFile, chown, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { devNull } from 'node:os';
import { join } from 'node:path';
import type { Binaries } from './binaries.js';
import type { DataFolder } from './data-folder.js';
import { EmbeddedPostgresError, systemErrorCode } from './errors.js';
import { readIfExists, syncFolder } from './files.js';
import { commandAs, type ServerUser } from './os-user.js';
import { runProgram } from './run-program.js';

/** Everything that is needed to run a program on the cluster. */
export interface Installation {
  readonly binaries: Binaries;
  readonly user: ServerUser;
  readonly folder: DataFolder;
}

/** Database and role that the application uses. The role owns the database and is no superuser. */
export const APPLICATION_NAME = 'onefold';

const CONFIGURATION = 'onefold.conf';
const UNFINISHED = 'postgres.init-';

/** initdb takes half a second on a desktop; a slow disk on a machine under load may need a hundred times that. */
const INIT_TIMEOUT_MS = 120_000;
const PROBE_TIMEOUT_MS = 30_000;

/** Whether there is a cluster, after a check that these programs can run it. */
export async function findCluster({ binaries, user, folder }: Installation): Promise<boolean> {
  const made = (await readIfExists(join(folder.cluster, 'PG_VERSION')))?.trim();
  const { code, output } = await runProgram(commandAs(user, binaries.postgres, ['--version']), { timeoutMs: PROBE_TIMEOUT_MS });
  const major = /PostgreSQL\) (\d+)/.exec(output)?.[1];
  if (code !== 0 || !major) throw new EmbeddedPostgresError('platform_unsupported', `${binaries.postgres} does not run here: ${output}`);
  if (made === undefined) return assertNothingThere(folder);
  if (made === major) return true;
  throw new EmbeddedPostgresError(
    'cluster_unusable',
    `the database in ${folder.cluster} was made by PostgreSQL ${made}, and ${binaries.source} is PostgreSQL ${major}, which cannot read it; ` +
      `go back to the release of Onefold that made it, dump it there (pg_dump) and load the dump into a fresh ONEFOLD_DATA_DIR`,
  );
}

async function assertNothingThere(folder: DataFolder): Promise<false> {
  const entries = await readdir(folder.cluster).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  });
  if (entries.length === 0) return false;
  throw new EmbeddedPostgresError(
    'cluster_unusable',
    `${folder.cluster} is not empty and has no PG_VERSION, so it is no PostgreSQL cluster; move it away or set ONEFOLD_DATA_DIR`,
  );
}

/**
 * Makes the cluster aside and renames it when it is complete, with role and database in it. A start that is killed in
 * between leaves only a folder with the unfinished name, which the next start removes.
 */
export async function createCluster(installation: Installation, password: string): Promise<void> {
  const { binaries, user, folder } = installation;
  const unfinished = join(folder.root, `${UNFINISHED}${randomBytes(6).toString('hex')}`);
  await mkdir(unfinished, { mode: 0o700 });
  if (user.kind !== 'self') await chown(unfinished, user.uid, user.gid);
  const args = [
    ...['--pgdata', unfinished, '--encoding=UTF8', '--locale=C', '--data-checksums', '--username=postgres'],
    // Over TCP only with a password; over a local socket, which is off anyway, not at all. The superuser has no password and
    // so cannot log in: a person who needs one uses `postgres --single`, as the folder's owner may.
    ...['--auth-host=scram-sha-256', '--auth-local=reject'],
  ];
  await mustSucceed('initdb', runProgram(commandAs(user, binaries.initdb, args), { timeoutMs: INIT_TIMEOUT_MS }));
  await appendFile(join(unfinished, 'postgresql.conf'), `\ninclude '${CONFIGURATION}'\n`, { flush: true });
  await writeConfiguration({ ...installation, folder: { ...folder, cluster: unfinished } }, '');
  await runSingleUser(installation, unfinished, [
    `create role ${APPLICATION_NAME} login createdb password '${password}'`,
    `grant pg_monitor, pg_checkpoint, pg_signal_backend to ${APPLICATION_NAME}`,
    `create database ${APPLICATION_NAME} owner ${APPLICATION_NAME}`,
  ]);
  await rename(unfinished, folder.cluster);
  await syncFolder(folder.root);
}

/** Removes what interrupted starts have left. The owner lock must be held. */
export async function removeUnfinishedClusters(folder: DataFolder): Promise<number> {
  const left = (await readdir(folder.root)).filter((name) => name.startsWith(UNFINISHED));
  for (const name of left) {
    // An initdb whose starter was killed may still be writing for a moment: try again for about 3 s.
    await rm(join(folder.root, name), { recursive: true, force: true, maxRetries: 8, retryDelay: 80 });
  }
  return left.length;
}

/** Gives the application's role another password. The server must not be running. */
export async function resetPassword(installation: Installation, password: string): Promise<void> {
  // A setting that PostgreSQL refused at the last start would stop this one too.
  await writeConfiguration(installation, '');
  await runSingleUser(installation, installation.folder.cluster, [`alter role ${APPLICATION_NAME} password '${password}'`]);
}

/** Runs SQL without a server and without a password, as the owner of the files may. One statement a line. */
async function runSingleUser({ binaries, user }: Installation, cluster: string, statements: readonly string[]): Promise<void> {
  const args = ['--single', '-D', cluster, '-c', 'exit_on_error=on', '-c', 'log_min_messages=error', 'postgres'];
  const stdin = statements.map((statement) => `${statement};\n`).join('');
  const limits = { timeoutMs: INIT_TIMEOUT_MS, stdin };
  await mustSucceed('postgres --single', runProgram(commandAs(user, binaries.postgres, args), limits));
}

async function mustSucceed(what: string, running: ReturnType<typeof runProgram>): Promise<void> {
  const { code, output } = await running;
  if (code === 0) return;
  throw new EmbeddedPostgresError(
    'start_failed',
    `${what} failed (${code === null ? 'stopped by a signal' : `status ${code}`}): ${output}`,
  );
}

/** The configuration of the last start, undefined before the first. */
export async function readConfiguration({ folder }: Installation): Promise<string | undefined> {
  return readIfExists(join(folder.cluster, CONFIGURATION));
}

/** Written before every start; a file cut by a crash is therefore never read. */
export async function writeConfiguration({ folder, user }: Installation, text: string): Promise<void> {
  const file = join(folder.cluster, CONFIGURATION);
  await writeFile(file, text, { mode: 0o600 });
  if (user.kind !== 'self') await chown(file, user.uid, user.gid);
  const main = join(folder.cluster, 'postgresql.conf');
  const includes = (await readFile(main, 'utf8')).includes(`include '${CONFIGURATION}'`);
  if (!includes) await appendFile(main, `\ninclude '${CONFIGURATION}'\n`);
}

/**
 * `lz4` if the programs were built with it, else `off`. The other method, pglz, gains nothing on our pages of random keys:
 * 20,000 inserts right after a checkpoint took twice the CPU for the same amount of log (18 MB).
 */
export async function chooseWalCompression({ binaries, user, folder }: Installation): Promise<string> {
  const args = ['-D', folder.cluster, '-c', `config_file=${devNull}`, '-C', 'wal_compression', '-c', 'wal_compression=lz4'];
  const { code } = await runProgram(commandAs(user, binaries.postgres, args), { timeoutMs: PROBE_TIMEOUT_MS });
  return code === 0 ? 'lz4' : 'off';
}
