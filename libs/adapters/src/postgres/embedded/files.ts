import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemErrorCode } from './errors.js';

/** Content of a text file, undefined when there is none. */
export async function readIfExists(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Replaces a file as a whole: after a crash it holds either the old content or the new one. */
export async function writeAtomically(file: string, content: string, mode: number): Promise<void> {
  const fresh = `${file}.new`;
  await writeFile(fresh, content, { mode, flush: true });
  await rename(fresh, file);
  await syncFolder(dirname(file));
}

/** Makes renames inside a folder durable. Windows cannot open folders and needs no such call. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
