import { execFileSync } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { commandAs } from '#adapters/postgres/embedded/os-user.js';
import { startEmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import { runProgram } from '#adapters/postgres/embedded/run-program.js';
import { buildLauncher, type BuiltLauncher } from './owner-process.js';
import { query } from './query.js';
import { makeScratch, type Scratch } from './scratch.js';

const isRoot = process.getuid?.() === 0;
/** Any user with an entry in the system's list will do; this one is everywhere. */
const NOBODY = isRoot
  ? { uid: Number(execFileSync('id', ['-u', 'nobody'])), gid: Number(execFileSync('id', ['-g', 'nobody'])) }
  : undefined;
/** Whether that user may reach this checkout, which a clone below /root does not allow. */
const isOpen = NOBODY !== undefined && canRead(import.meta.filename);

function canRead(file: string): boolean {
  try {
    execFileSync('cat', [file], { ...NOBODY, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Real and effective user of a process. */
async function userOf(pid: number): Promise<string | undefined> {
  return /^Uid:\s+(\d+\s+\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
}

describe.runIf(isRoot && process.platform === 'linux')('started by root', () => {
  let closed: string;
  beforeEach(async () => {
    closed = await mkdtemp(join(tmpdir(), 'onefold-closed-')); // mode 0700, like /root
  });
  afterEach(() => rm(closed, { recursive: true }));

  it('the server runs as another user, who owns the cluster', async () => {
    const server = await startEmbeddedPostgres({ dataDir: closed });
    const { uid } = await stat(join(closed, 'postgres'));
    expect(uid).not.toBe(0);
    expect(await userOf(server.pid)).toBe(`${uid}\t${uid}`);
    expect((await stat(join(closed, 'postgres-password'))).uid).toBe(0);
    await server.stop();
  });

  it('works below a folder that is closed to that user, and leaves the folder closed', async () => {
    const dataDir = join(closed, 'clone', '.onefold');
    const server = await startEmbeddedPostgres({ dataDir });
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    // CAP_DAC_READ_SEARCH is capability 2; nothing else of root is left.
    const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
    expect(/^CapEff:\s+(\w+)/m.exec(status)?.[1]).toBe('0000000000000004');
    await server.stop();
    const again = await startEmbeddedPostgres({ dataDir });
    await again.stop();
    expect((await stat(closed)).mode & 0o777).toBe(0o700);
  });

  it('lets that user find a program in a closed folder, and nothing beyond reading', async () => {
    const program = join(closed, 'program');
    await writeFile(program, '', { mode: 0o755 });
    // access(2), which PostgreSQL uses to find its own programs, asks by the real user and forgets capabilities by default.
    const script = `const fs = require('fs'); fs.accessSync(${JSON.stringify(program)}, fs.constants.X_OK);
      try { fs.writeFileSync(${JSON.stringify(program)}, 'x') } catch (error) { process.stdout.write(error.code) }`;
    const user = { kind: 'switched-with-passage', name: 'nobody', ...NOBODY! } as const;
    const { code, output } = await runProgram(commandAs(user, process.execPath, ['-e', script]), { timeoutMs: 30_000 });
    expect({ code, output }).toEqual({ code: 0, output: 'EACCES' });
  });

  it('says so when another user had the data folder before', async () => {
    const version = join(closed, 'postgres', 'PG_VERSION');
    await mkdir(join(closed, 'postgres'));
    await writeFile(version, '18\n');
    for (const each of [version, join(closed, 'postgres')]) await chown(each, 4321, 4321);
    await expect(startEmbeddedPostgres({ dataDir: closed })).rejects.toMatchObject({
      code: 'data_folder_foreign',
      message: expect.stringMatching(
        /last used by another OS user: .*postgres belongs to uid 4321 and is needed by \w+ \(uid \d+\)/,
      ) as string,
    });
  });
});

describe.runIf(isOpen)('started by an ordinary user', () => {
  let launcher: BuiltLauncher;
  let scratch: Scratch;
  let dataDir: string;
  beforeAll(async () => {
    launcher = await buildLauncher();
  });
  afterAll(() => launcher.remove());
  beforeEach(async () => {
    scratch = await makeScratch();
    dataDir = scratch.dataDir;
    await chown(dataDir, NOBODY!.uid, NOBODY!.gid);
  });
  afterEach(async () => {
    await chown(dataDir, 0, 0); // so that root's clean-up may own it
    await rm(join(dataDir, 'postgres'), { recursive: true, force: true });
    await scratch.remove();
  });

  it('the server runs as that user, survives a crash and is adopted', async () => {
    const owner = scratch.startOwner(launcher, NOBODY);
    const { pid } = await owner.ready;
    expect(await userOf(pid)).toBe(`${NOBODY!.uid}\t${NOBODY!.uid}`);
    await owner.kill();
    const next = scratch.startOwner(launcher, NOBODY);
    expect(await next.ready).toMatchObject({ pid, adopted: true });
    await next.stop();
  });

  it('says so when root had the data folder before', async () => {
    await chmod(dataDir, 0o711);
    await chown(dataDir, 0, 0);
    const roots = await scratch.start();
    await roots.stop();
    const owner = scratch.startOwner(launcher, NOBODY);
    await expect(owner.ready).rejects.toMatchObject({
      code: 'data_folder_foreign',
      message: expect.stringContaining('was last used by another OS user') as string,
    });
    await owner.exited;
  });
});
