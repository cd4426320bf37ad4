import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stopAbandonedPostgres } from '#adapters/postgres/embedded/index.js';
import { query } from './query.js';
import { makeScratch, type Scratch } from './scratch.js';

let scratch: Scratch;
let dataDir: string;
beforeEach(async () => {
  scratch = await makeScratch();
  dataDir = scratch.dataDir;
});
afterEach(() => scratch.remove());

describe('a data folder', () => {
  it('that is missing has no abandoned server, and is not made to find that out', async () => {
    const missing = join(dataDir, 'missing');
    expect(await stopAbandonedPostgres(missing)).toBe(false);
    await expect(stat(missing)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('of another major version is refused with the way out, untouched', async () => {
    const server = await scratch.start();
    await server.stop();
    const file = join(dataDir, 'postgres', 'PG_VERSION');
    const ours = await readFile(file, 'utf8');
    await writeFile(file, '16\n');
    await expect(scratch.start()).rejects.toMatchObject({
      code: 'cluster_unusable',
      message: expect.stringMatching(/made by PostgreSQL 16, .* is PostgreSQL \d+.*pg_dump.*ONEFOLD_DATA_DIR/) as string,
    });
    await writeFile(file, ours);
    const again = await scratch.start();
    await again.stop();
  });

  it('with something else in place of the cluster is refused, untouched', async () => {
    await mkdir(join(dataDir, 'postgres'));
    await writeFile(join(dataDir, 'postgres', 'notes.txt'), 'mine');
    await expect(scratch.start()).rejects.toMatchObject({ code: 'cluster_unusable' });
    expect(await readFile(join(dataDir, 'postgres', 'notes.txt'), 'utf8')).toBe('mine');
  });

  it('without its password is given a new one', async () => {
    const server = await scratch.start();
    await query(server.url, 'create table kept as select 42 as answer');
    await server.stop();
    await rm(join(dataDir, 'postgres-password'));
    const next = await scratch.start();
    expect(new URL(next.url).password).not.toBe(new URL(server.url).password);
    expect(await query(next.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    await next.stop();
  });

  it('whose password does not fit is refused with the way out, and no server is left running', async () => {
    const server = await scratch.start();
    await server.stop();
    await writeFile(join(dataDir, 'postgres-password'), 'wrong\n');
    await expect(scratch.start()).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('remove that file') as string,
    });
    expect(await stopAbandonedPostgres(dataDir)).toBe(false);
  });

  it('with a log above 10 MiB begins a new one', async () => {
    const log = join(dataDir, 'postgres.log');
    await writeFile(log, Buffer.alloc(10 * 1024 * 1024 + 1, 'x'));
    const server = await scratch.start();
    await server.stop();
    expect((await stat(log)).size).toBeLessThan(100_000);
    expect(await readFile(log, 'utf8')).toContain('database system is ready');
  });
});
