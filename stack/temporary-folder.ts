import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspectProcess, isAlive } from '#adapters/postgres/embedded/process-info.js';

const OWNER = 'owner-process.json';
/** One that has no owner yet may be of a program that is just making it. */
const UNOWNED_MAX_MS = 60_000;

/**
 * A folder for this process alone. What processes that were killed have left under the same prefix is removed first: their programs have
 * been ended by their guard, but nobody was left to remove the files.
 *
 * @param beforeRemoval told of each such folder, to end what may still run in it
 */
export async function makeTemporaryFolder(
  prefix: string,
  beforeRemoval: (folder: string) => Promise<void> = () => Promise.resolve(),
): Promise<string> {
  for (const name of (await readdir(tmpdir())).filter((each) => each.startsWith(prefix))) {
    const folder = join(tmpdir(), name);
    if (!(await isAbandoned(folder))) continue;
    await beforeRemoval(folder);
    await rm(folder, { recursive: true, force: true });
  }
  const folder = await mkdtemp(join(tmpdir(), prefix));
  const { pid, startedAt } = (await inspectProcess(process.pid))!;
  await writeFile(join(folder, OWNER), JSON.stringify({ pid, startedAt }));
  return folder;
}

async function isAbandoned(folder: string): Promise<boolean> {
  try {
    const { pid, startedAt } = JSON.parse(await readFile(join(folder, OWNER), 'utf8')) as { pid: number; startedAt: string };
    return !(await isAlive({ pid, startedAt, command: '' }));
  } catch {
    // No owner written, cut in writing, of another user, or gone meanwhile.
    const made = await stat(folder).catch(() => undefined);
    return made !== undefined && made.uid === process.getuid?.() && Date.now() - made.mtimeMs > UNOWNED_MAX_MS;
  }
}
