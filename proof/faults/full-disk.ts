import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Verdict } from './judge.js';
import { FaultServer } from './server.js';

/** An empty cluster and a database take some 60 MB with their write-ahead log; the rest is filled up in no time. */
const DISK_SIZE = '160m';
const CHUNK_BYTES = 1024 * 1024;
const SMALL_CHUNK_BYTES = 4096;

export interface SmallDisk {
  /** Leaves not one block free. */
  fill(): void;
  free(): void;
}

/** Runs on a PostgreSQL whose data folder is a small disk of its own. Skipped where nothing may be mounted. */
export async function withFullDisk(run: (server: FaultServer, disk: SmallDisk) => Promise<Verdict>): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), 'onefold-full-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_SIZE},mode=0755`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    const said = String((error as { stderr?: Buffer }).stderr ?? (error as Error).message).trim();
    return { operations: 0, effects: 0, findings: [], skipped: `no small disk can be mounted here (${said})` };
  }
  let server: FaultServer | undefined;
  const ballast = join(folder, 'ballast');
  const free = () => rmSync(ballast, { force: true });
  try {
    chmodSync(folder, 0o755);
    server = await FaultServer.start(join(folder, 'data'));
    // Where the full disk is met by the write-ahead log, PostgreSQL ends, and so does its recovery for as long as the disk is full.
    server.supervise();
    return await run(server, { fill: () => fill(ballast), free });
  } finally {
    free();
    await server?.stop();
    execFileSync('umount', [folder]);
    rmSync(folder, { recursive: true, force: true });
  }
}

function fill(file: string): void {
  const handle = openSync(file, 'w');
  try {
    for (const bytes of [CHUNK_BYTES, SMALL_CHUNK_BYTES]) writeUntilFull(handle, Buffer.alloc(bytes));
  } finally {
    closeSync(handle);
  }
}

/** The disk has a size, so this ends. */
function writeUntilFull(handle: number, chunk: Buffer): void {
  try {
    for (;;) writeSync(handle, chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
