import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { EmbeddedPostgresError } from './errors.js';
import { readIfExists } from './files.js';
import { runProgram, type Command } from './run-program.js';

/** A line of /etc/passwd. */
export interface OsUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/**
 * As whom PostgreSQL's programs run.
 * `self`: as this process. `switched`: this process is root, which PostgreSQL refuses, so they run as another user.
 * `switched-with-passage`: the same, and that user may also pass folders that are closed to it (a clone below /root).
 */
export type ServerUser = ({ readonly kind: 'self' } & Partial<OsUser>) | ({ readonly kind: 'switched' | 'switched-with-passage' } & OsUser);

/** The first that exists is taken: a user made for PostgreSQL, else the one that owns nothing. */
const CANDIDATES = ['postgres', 'nobody'];

/** Long enough for a machine under load to start a program that only prints its version. */
const PROBE_TIMEOUT_MS = 30_000;

/** @param program one of PostgreSQL's programs, to see whether the user may execute it at all */
export async function chooseServerUser(program: string): Promise<ServerUser> {
  const uid = process.getuid?.();
  if (uid === undefined) return { kind: 'self' };
  const users = await readUsers();
  if (uid !== 0) return { kind: 'self', uid, gid: process.getgid?.(), name: users.find((user) => user.uid === uid)?.name };
  const user = CANDIDATES.map((name) => users.find((each) => each.name === name)).find((each) => each !== undefined && each.uid !== 0);
  if (!user) {
    throw new EmbeddedPostgresError(
      'os_user_unsuitable',
      `PostgreSQL refuses to run as root, and there is no OS user ${CANDIDATES.join(' or ')} to run it as; ` +
        'run as an ordinary user, or make one with "useradd --system postgres"',
    );
  }
  const { mode } = await stat(program);
  if (!(await mayExecute(user, program))) {
    throw new EmbeddedPostgresError(
      'os_user_unsuitable',
      `OS user ${user.name} may not execute ${program} (mode ${(mode & 0o777).toString(8)}); ` +
        'install again with "umask 022", or run as the ordinary user that owns it',
    );
  }
  return { kind: 'switched', ...user };
}

/** The same user, able to pass closed folders if any of these paths (absolute, without links) lies below one. */
export async function grantPassage(user: ServerUser, paths: readonly string[]): Promise<ServerUser> {
  if (user.kind !== 'switched') return user;
  const closed = await firstClosedFolder(user, paths);
  if (closed === undefined) return user;
  const withPassage: ServerUser = { ...user, kind: 'switched-with-passage' };
  const refusal = await tryRun(commandAs(withPassage, 'true', []));
  if (refusal === undefined) return withPassage;
  throw new EmbeddedPostgresError(
    'os_user_unsuitable',
    `PostgreSQL runs as OS user ${user.name}, which may not pass ${closed}, and setpriv cannot let it (${refusal}); ` +
      `put the program and ONEFOLD_DATA_DIR where ${user.name} may go (for instance below /srv), or run as an ordinary user`,
  );
}

async function tryRun(command: Command): Promise<string | undefined> {
  try {
    const { code, output } = await runProgram(command, { timeoutMs: PROBE_TIMEOUT_MS });
    return code === 0 ? undefined : output || `exit status ${code}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** How to run one of PostgreSQL's programs as that user. */
export function commandAs(user: ServerUser, file: string, args: readonly string[]): Command {
  const options = { env: cleanEnvironment(), windowsHide: true, ...(process.platform !== 'win32' && { cwd: '/' }) };
  if (user.kind === 'self') return { file, args, options };
  if (user.kind === 'switched') return { file, args, options: { ...options, uid: user.uid, gid: user.gid } };
  return { file: 'setpriv', args: [...passageArguments(user), '--', file, ...args], options };
}

/**
 * `no_setuid_fixup`: PostgreSQL looks for its programs with access(2), which otherwise drops the capability for every user
 * but root. Nothing else of root is left after the switch: the permitted set of the new program is the ambient one.
 */
function passageArguments(user: OsUser): string[] {
  return [
    ...['--reuid', String(user.uid), '--regid', String(user.gid), '--clear-groups', '--no-new-privs'],
    ...['--securebits', '+no_setuid_fixup', '--inh-caps', '+dac_read_search', '--ambient-caps', '+dac_read_search'],
  ];
}

/**
 * Not the environment of this process: it holds secrets, and PG* variables of a developer's shell would change the server.
 * LC_ALL keeps the messages in English, which is what we look for in them.
 */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = ['PATH', 'SystemRoot', 'TEMP', 'TMP', 'TMPDIR', 'TZDIR'];
  const environment = Object.fromEntries(kept.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
  return { ...environment, LC_ALL: 'C' };
}

/** Name of an OS user for messages. */
export async function describeOsUser(uid: number): Promise<string> {
  const user = (await readUsers()).find((each) => each.uid === uid);
  return user ? `${user.name} (uid ${uid})` : `uid ${uid}`;
}

async function readUsers(): Promise<OsUser[]> {
  // On macOS this lists the system's users only, which is where `nobody` is; people's names are missing from messages there.
  const text = (await readIfExists('/etc/passwd')) ?? '';
  return text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid && !name.startsWith('#') ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

async function firstClosedFolder(user: OsUser, paths: readonly string[]): Promise<string | undefined> {
  const folders = new Set(paths.flatMap(foldersAbove));
  for (const folder of folders) {
    if (!(await mayExecute(user, folder))) return folder;
  }
  return undefined;
}

function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersAbove(above), above];
}

/** Judged by the mode alone, as the switched process has no other groups; for a folder this is the right to pass it. */
async function mayExecute(user: OsUser, path: string): Promise<boolean> {
  const { uid, gid, mode } = await stat(path);
  const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  return (mode & bit) !== 0;
}
