import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import type { EmbeddedPostgresOptions } from '#adapters/postgres/embedded/index.js';

const REPOSITORY = fileURLToPath(new URL('../../../../..', import.meta.url));
const SOURCES = join(REPOSITORY, 'libs/adapters/src/postgres/embedded');

/** What a process says on its output, one JSON a line. */
interface Said {
  readonly ready?: { readonly url: string; readonly adopted: boolean; readonly pid: number };
  readonly error?: { readonly code: string; readonly message: string };
  readonly progress?: string;
}

/** Another Node process that owns a data folder: something that can be killed. */
export interface OwnerProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  readonly progress: string[];
  /** The server, once it runs; rejects with the message if it does not start. */
  readonly ready: Promise<NonNullable<Said['ready']>>;
  /** Asks it to stop the server and end; resolves when it has ended. */
  stop(): Promise<void>;
  /** SIGKILL, to it and everything in its process group. */
  kill(): Promise<void>;
  readonly exited: Promise<unknown>;
}

/** The launcher as plain JavaScript inside `node_modules`, where a separate process finds its packages. */
export interface BuiltLauncher {
  start(options: Omit<EmbeddedPostgresOptions, 'onProgress'>, as?: { uid: number; gid: number }): OwnerProcess;
  remove(): Promise<void>;
}

const RUNNER = `
import { startEmbeddedPostgres } from './index.js';
const say = (what) => process.stdout.write(JSON.stringify(what) + '\\n');
try {
  const server = await startEmbeddedPostgres({ ...JSON.parse(process.argv[2]), onProgress: (progress) => say({ progress }) });
  say({ ready: { url: server.url, adopted: server.adopted, pid: server.pid } });
  await new Promise((resolve) => process.stdin.once('data', resolve));
  await server.stop();
  process.exit(0);
} catch (error) {
  say({ error: { code: error.code, message: error.message } });
  process.exit(1);
}
`;

export async function buildLauncher(): Promise<BuiltLauncher> {
  const folder = await mkdtemp(join(REPOSITORY, 'node_modules/.onefold-test-'));
  await chmod(folder, 0o755);
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 };
  for (const name of (await readdir(SOURCES)).filter((each) => each.endsWith('.ts'))) {
    const { outputText } = ts.transpileModule(await readFile(join(SOURCES, name), 'utf8'), { compilerOptions });
    await writeFile(join(folder, name.replace(/\.ts$/, '.js')), outputText);
  }
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'runner.js'), RUNNER);
  return {
    start: (options, as) => startOwner(join(folder, 'runner.js'), JSON.stringify(options), as),
    remove: () => rm(folder, { recursive: true }),
  };
}

function startOwner(runner: string, options: string, as?: { uid: number; gid: number }): OwnerProcess {
  // Detached: a process group of its own, so that the whole group can be killed without the test.
  const child = spawn(process.execPath, [runner, options], { ...as, cwd: '/', detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
  const pid = child.pid!;
  const progress: string[] = [];
  const exited = once(child, 'exit');
  const ready = new Promise<NonNullable<Said['ready']>>((resolve, reject) => {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const said = JSON.parse(line) as Said;
      if (said.progress) progress.push(said.progress);
      if (said.ready) resolve(said.ready);
      if (said.error) reject(Object.assign(new Error(said.error.message), { code: said.error.code }));
    });
    child.once('close', () => reject(new Error('the owner process ended before its server was ready')));
  });
  ready.catch(() => undefined); // a test that kills it early does not wait for it
  const stop = async () => {
    child.stdin!.end('stop\n');
    await exited;
  };
  const kill = async () => {
    process.kill(-pid, 'SIGKILL');
    await exited;
  };
  return { pid, child, progress, ready, stop, kill, exited };
}
