import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { locateBinaries } from './binaries.js';
import * as cluster from './cluster.js';
import { APPLICATION_NAME, type Installation } from './cluster.js';
import { assertOwnFolder, makePassword, openDataFolder, openForPassage, readLogTail, readPassword } from './data-folder.js';
import { EmbeddedPostgresError } from './errors.js';
import { ExitWatch, type ExitListener } from './exit-watch.js';
import { chooseServerUser, grantPassage } from './os-user.js';
import { takeOwnerLock, type OwnerLock } from './owner-lock.js';
import { assertPortFree, findFreePort } from './port.js';
import { findPostmaster, stopPostmaster, type Found, type Postmaster } from './postmaster.js';
import { isAlive, type ProcessInfo } from './process-info.js';
import { waitUntilReady, type Patience } from './readiness.js';
import { checkSettings, renderConfiguration, withoutPort, type Settings } from './settings.js';
import { spawnPostmaster } from './spawn-postmaster.js';

export interface EmbeddedPostgresOptions {
  /**
   * Folder for everything this database needs, made if missing: `postgres/` (the cluster), `postgres-password` (readable by the
   * owner only), `postgres.log`, `owner.json` (who runs it). One process owns it at a time.
   */
  readonly dataDir: string;
  /** TCP port on 127.0.0.1. Left out: any free one, another at each start. */
  readonly port?: number;
  /** PostgreSQL settings that go before ours. What durability rests on cannot be turned off. */
  readonly settings?: Settings;
  /** Told what is being done, one short sentence at a time, for a person who waits. */
  readonly onProgress?: (text: string) => void;
}

export interface EmbeddedPostgres {
  /** `postgresql://onefold:<password>@127.0.0.1:<port>/onefold`. Holds a secret: not for logs. */
  readonly url: string;
  /** Whether the server was already running, left by a process that was killed. */
  readonly adopted: boolean;
  /** Process id of the server. */
  readonly pid: number;
  /**
   * Stops the server (open sessions are ended) and gives the data folder free; the last step of a shutdown. Takes at most
   * about a minute. Repeated calls wait for the first.
   * @throws EmbeddedPostgresError `stop_failed`
   */
  stop(): Promise<void>;
  /** Called once if the server ends without `stop()`, also when it has ended already. */
  onExit(listener: ExitListener): void;
}

/** Recovery replays up to `max_wal_size` of log: minutes on a slow disk. Silence for a minute is a fault. */
const START_PATIENCE: Patience = { silenceMs: 60_000, recoveryMs: 300_000 };
/** A server that runs already answers in milliseconds, unless it hangs or was killed in the middle of a recovery. */
const ADOPTION_PATIENCE: Patience = { silenceMs: 10_000, recoveryMs: 300_000 };

/** The shutdown checkpoint writes what `shared_buffers` holds: seconds, on a slow disk under load several. */
const FAST_STOP_SECONDS = 30;
/** It has been silent for ten seconds already. */
const FAST_STOP_OF_SILENT_SECONDS = 10;

/** One second apart. The children of a killed server see its death within a second, in a long query somewhat later. */
const START_ATTEMPTS_MAX = 20;
const START_ATTEMPT_INTERVAL_MS = 1000;

/**
 * Runs PostgreSQL from an npm package, as a process of its own that outlives a crash of this one.
 *
 * The server has its own session, so that Ctrl-C in a terminal ends us and not the database under us. When this process is
 * killed, the server keeps running and the next start adopts it; when both are killed, the next start recovers from the
 * write-ahead log. Installs no exit hook and no signal handler: the application decides the order of its shutdown.
 *
 * Seen working on Linux with glibc. Written for macOS and Windows too (`ps`, PowerShell and `pg_ctl` in place of /proc), but
 * not tried there; on Windows run as a user without administrator rights, which PostgreSQL refuses.
 *
 * @throws EmbeddedPostgresError with a message that names the fault and the way out
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  checkSettings(options.settings ?? {});
  checkPort(options.port);
  const installation = await prepare(options.dataDir);
  const lock = await takeOwnerLock(installation.folder.root);
  try {
    return await run(installation, lock, options);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Stops a server that a killed process has left on this data folder. Tells whether there was one; makes nothing. */
export async function stopAbandonedPostgres(dataDir: string): Promise<boolean> {
  if (!existsSync(dataDir)) return false;
  const installation = await prepare(dataDir);
  const lock = await takeOwnerLock(installation.folder.root);
  try {
    const found = await findPostmaster(installation.folder);
    if (found.kind === 'running') await stopPostmaster(installation, found.postmaster, FAST_STOP_SECONDS);
    return found.kind === 'running';
  } finally {
    await lock.release();
  }
}

function checkPort(port: number | undefined): void {
  if (port === undefined || (Number.isInteger(port) && port >= 1 && port <= 65_535)) return;
  throw new EmbeddedPostgresError('setting_refused', `ONEFOLD_DATABASE_PORT must be a port number from 1 to 65535, not ${port}`);
}

async function prepare(dataDir: string): Promise<Installation> {
  const binaries = await locateBinaries();
  const user = await chooseServerUser(binaries.postgres);
  const folder = await openDataFolder(resolve(dataDir));
  await assertOwnFolder(folder, user);
  await openForPassage(folder, user);
  return { binaries, folder, user: await grantPassage(user, [folder.cluster, binaries.postgres]) };
}

/** What one start has found out, handed down to its steps. */
interface Start {
  readonly installation: Installation;
  readonly lock: OwnerLock;
  readonly options: EmbeddedPostgresOptions;
  readonly progress: (text: string) => void;
  readonly password: string;
  readonly render: (port: number) => string;
}

async function run(installation: Installation, lock: OwnerLock, options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const progress = options.onProgress ?? (() => undefined);
  const password = await ensureCluster(installation, progress);
  const { source } = installation.binaries;
  const walCompression = await cluster.chooseWalCompression(installation);
  const render = (port: number) => renderConfiguration({ source, port, walCompression, settings: options.settings ?? {} });
  const start: Start = { installation, lock, options, progress, password, render };
  const found = await findPostmaster(installation.folder);
  const adopted = found.kind === 'running' ? await adopt(start, found.postmaster) : undefined;
  return adopted ?? (await startServer(start, found));
}

/** The cluster's password; makes the cluster or the password if missing. */
async function ensureCluster(installation: Installation, progress: (text: string) => void): Promise<string> {
  const { folder } = installation;
  const removed = await cluster.removeUnfinishedClusters(folder);
  if (removed > 0) progress('removed a database that an interrupted start had left unfinished');
  const present = await cluster.findCluster(installation);
  const kept = await readPassword(folder);
  if (present && kept) return kept;
  const password = kept ?? (await makePassword(folder));
  if (!present) {
    progress('making the database (first start)');
    await cluster.createCluster(installation, password);
    return password;
  }
  progress('setting a new database password, as the file postgres-password is missing');
  const found = await findPostmaster(folder);
  if (found.kind === 'running') await stopPostmaster(installation, found.postmaster, FAST_STOP_SECONDS);
  await cluster.resetPassword(installation, password);
  return password;
}

/** Takes over a running server if it is what a start of our own would give; stops it otherwise. */
async function adopt(start: Start, postmaster: Postmaster): Promise<EmbeddedPostgres | undefined> {
  const { installation, progress } = start;
  if (!(await isAsWanted(start, postmaster))) {
    progress(`restarting the database (process ${postmaster.pid}), which runs with other settings`);
    await stopPostmaster(installation, postmaster, FAST_STOP_SECONDS);
    return undefined;
  }
  const url = urlOf(start.password, postmaster.port);
  const readiness = await waitUntilReady(url, ADOPTION_PATIENCE, async () => !(await isAlive(postmaster)));
  if (readiness === 'ready') {
    progress(`took over the running database (process ${postmaster.pid})`);
    return handle(start, postmaster, { url, adopted: true, watch: ExitWatch.ofStranger(postmaster) });
  }
  progress(`stopping a database that does not answer (process ${postmaster.pid})`);
  await stopPostmaster(installation, postmaster, FAST_STOP_OF_SILENT_SECONDS);
  return undefined;
}

async function isAsWanted({ installation, options, render }: Start, { command, port }: Postmaster): Promise<boolean> {
  const { binaries, folder } = installation;
  if (options.port !== undefined && options.port !== port) return false;
  if (!command.startsWith(`${binaries.postgres} -D ${folder.cluster} `)) return false;
  return withoutPort(await cluster.readConfiguration(installation)) === withoutPort(render(port));
}

async function startServer(start: Start, found: Found): Promise<EmbeddedPostgres> {
  const { installation, lock, options, progress } = start;
  for (let attempt = 1; ; attempt += 1) {
    if (options.port !== undefined) await assertPortFree(options.port);
    const port = options.port ?? (await findFreePort());
    await cluster.writeConfiguration(installation, start.render(port));
    await lock.confirm();
    progress(`starting the database on port ${port}`);
    const server = await spawnPostmaster(installation, found.kind === 'none' ? undefined : found.pid);
    const url = urlOf(start.password, port);
    const readiness = await readyOrStopped(installation, server, url);
    if (readiness === 'ready') return handle(start, server.process, { url, adopted: false, watch: server.watch });
    const said = await readLogTail(installation.folder, server.logStart);
    const obstacle = passingObstacle(said);
    if (!obstacle || attempt === START_ATTEMPTS_MAX) throw startFailed(installation, readiness, said);
    progress(`waiting: ${obstacle}`);
    await pause(START_ATTEMPT_INTERVAL_MS);
  }
}

/** Anything but a server that works is stopped before we look further. */
async function readyOrStopped(installation: Installation, server: { process: ProcessInfo; watch: ExitWatch }, url: string) {
  let readiness: Awaited<ReturnType<typeof waitUntilReady>> | undefined;
  try {
    readiness = await waitUntilReady(url, START_PATIENCE, () => server.watch.hasEnded);
    return readiness;
  } finally {
    if (readiness !== 'ready') await stopPostmaster(installation, server.process, FAST_STOP_SECONDS);
  }
}

/** Reasons to fail that go away by themselves. */
function passingObstacle(logTail: string): string | undefined {
  if (/shared memory block .* is still in use/.test(logTail)) return 'processes of the previous server are still ending';
  if (/could not bind .*[Aa]ddress/.test(logTail)) return 'another program took the port in the same instant';
  return undefined;
}

function startFailed({ folder }: Installation, readiness: string, said: string): EmbeddedPostgresError {
  const what = {
    stopped: 'stopped while starting',
    silent: `did not answer within ${START_PATIENCE.silenceMs / 1000} s`,
    recovering: `was still recovering after ${START_PATIENCE.recoveryMs / 1000} s`,
  }[readiness];
  return new EmbeddedPostgresError('start_failed', `the embedded PostgreSQL ${what}. The end of ${folder.log}:\n${said || '(nothing)'}`);
}

function handle(
  { installation, lock }: Start,
  postmaster: ProcessInfo,
  known: { url: string; adopted: boolean; watch: ExitWatch },
): EmbeddedPostgres {
  const stop = async () => {
    known.watch.expectExit();
    await stopPostmaster(installation, postmaster, FAST_STOP_SECONDS);
    await lock.release();
  };
  let stopping: Promise<void> | undefined;
  return {
    url: known.url,
    adopted: known.adopted,
    pid: postmaster.pid,
    stop: () => (stopping ??= stop()),
    onExit: (listener) => known.watch.onExit(listener),
  };
}

function urlOf(password: string, port: number): string {
  return `postgresql://${APPLICATION_NAME}:${password}@127.0.0.1:${port}/${APPLICATION_NAME}`;
}
