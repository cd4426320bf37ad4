import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PostgresExit } from '#adapters/postgres/embedded/index.js';
import { buildLauncher, type BuiltLauncher } from './owner-process.js';
import { query } from './query.js';
import { makeScratch, type Scratch } from './scratch.js';

// Up to five starts in one test, beside other tests on few cores.
vi.setConfig({ testTimeout: 90_000 });

let launcher: BuiltLauncher;
/** One cluster for all tests that do not need a fresh one: making it is most of the time. */
let shared: Scratch;
let scratch: Scratch;

beforeAll(async () => {
  launcher = await buildLauncher();
  shared = await makeScratch();
});
afterAll(async () => {
  await shared.remove();
  await launcher.remove();
});
beforeEach(() => {
  scratch = shared;
});
afterEach(() => scratch.stopAll());

function withFreshFolder(): void {
  beforeEach(async () => {
    scratch = await makeScratch();
  });
  afterEach(() => scratch.remove());
}

/** Inserts numbers one by one until the connection breaks; the last one whose insert was acknowledged. */
async function insertUntilBroken(url: string, first: number, started: () => void): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined); // the insert in flight fails too
  await client.connect();
  let acknowledged = first - 1;
  try {
    for (; acknowledged < 1_000_000;) {
      await client.query('insert into numbers values ($1)', [acknowledged + 1]);
      acknowledged += 1;
      if (acknowledged === first + 20) started();
    }
  } catch {
    await client.end().catch(() => undefined);
  }
  return acknowledged;
}

describe('when only the owner is killed', () => {
  it('the server lives on and the next owner adopts it, again and again', async () => {
    const first = scratch.startOwner(launcher);
    const { pid, url } = await first.ready;
    await query(url, 'create table lives as select 0 as life');
    await first.kill();
    for (let life = 1; life <= 3; life += 1) {
      const next = scratch.startOwner(launcher);
      expect(await next.ready).toEqual({ pid, url, adopted: true });
      await query(url, `insert into lives values (${life})`);
      await next.kill();
    }
    const last = scratch.startOwner(launcher);
    const server = await last.ready;
    expect(await query(server.url, 'select count(*)::int as lives from lives')).toEqual([{ lives: 4 }]);
    await last.stop();
    await expect(query(url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('Ctrl-C in its terminal does not reach the server', async () => {
    const owner = scratch.startOwner(launcher);
    const { pid, url } = await owner.ready;
    process.kill(-owner.pid, 'SIGINT');
    await owner.exited;
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    const next = scratch.startOwner(launcher);
    expect(await next.ready).toMatchObject({ pid, adopted: true });
    await next.stop();
  });

  it('the next owner restarts a server that runs with other settings', async () => {
    const owner = scratch.startOwner(launcher);
    const { pid } = await owner.ready;
    await owner.kill();
    const server = await scratch.start({ settings: { work_mem: '7MB' } });
    expect(server).toMatchObject({ adopted: false });
    expect(server.pid).not.toBe(pid);
    expect(await query(server.url, 'show work_mem')).toEqual([{ work_mem: '7MB' }]);
    await server.stop();
  });
});

describe('when owner and server are killed', () => {
  it('the next start recovers all that was acknowledged, again and again', async () => {
    let expected = 0;
    for (let round = 1; round <= 3; round += 1) {
      const owner = scratch.startOwner(launcher);
      const server = await owner.ready;
      expect(server.adopted).toBe(false);
      await query(server.url, 'create table if not exists numbers (n int primary key)');
      const [{ count, last } = {}] = await query(server.url, 'select count(*)::int as count, coalesce(max(n), 0) as last from numbers');
      expect(count).toBe(last); // no holes
      expect(Number(last)).toBeGreaterThanOrEqual(expected);
      expect(Number(last)).toBeLessThanOrEqual(expected + 1); // one insert may have landed unacknowledged
      let begun = () => {};
      const underWay = new Promise<void>((resolve) => (begun = resolve));
      const inserting = insertUntilBroken(server.url, Number(last) + 1, begun);
      await underWay;
      process.kill(server.pid, 'SIGKILL');
      await owner.kill();
      expected = await inserting;
    }
    expect(expected).toBeGreaterThan(60);
    const server = await scratch.start();
    const [row] = await query(server.url, `select count(*) filter (where n <= ${expected})::int as kept from numbers`);
    expect(row).toEqual({ kept: expected });
    await server.stop();
  });
});

describe('when the server dies under its owner', () => {
  it('the owner is told how', async () => {
    const server = await scratch.start();
    const told = new Promise<PostgresExit>((resolve) => server.onExit(resolve));
    process.kill(server.pid, 'SIGKILL');
    expect(await told).toEqual({ code: null, signal: 'SIGKILL' });
    expect(await new Promise((resolve) => server.onExit(resolve))).toEqual({ code: null, signal: 'SIGKILL' }); // a late listener too
    await server.stop();
    const again = await scratch.start();
    await again.stop();
  });

  it('an owner that adopted it is told that', async () => {
    const former = scratch.startOwner(launcher);
    await former.ready;
    await former.kill();
    const server = await scratch.start();
    expect(server.adopted).toBe(true);
    const told = new Promise<PostgresExit>((resolve) => server.onExit(resolve));
    process.kill(server.pid, 'SIGKILL');
    expect(await told).toEqual({ code: null, signal: null });
    await server.stop();
  });
});

describe('when the first start is killed', () => {
  withFreshFolder();
  const unfinished = async () => (await readdir(scratch.dataDir)).filter((name) => name.startsWith('postgres.init-'));

  it.each(['PG_VERSION', 'global/pg_control', 'onefold.conf'])('once %s is there, the next start begins anew', async (file) => {
    const owner = scratch.startOwner(launcher);
    for (const until = Date.now() + 20_000; Date.now() < until; await pause(1)) {
      const [folder] = await unfinished();
      if (folder && (await stat(join(scratch.dataDir, folder, file)).catch(() => undefined))) break;
    }
    await owner.kill();
    expect(await unfinished()).toHaveLength(1);

    const next = scratch.startOwner(launcher);
    const { url } = await next.ready;
    expect(await query(url, 'select current_database() as database')).toEqual([{ database: 'onefold' }]);
    expect(next.progress).toContain('removed a database that an interrupted start had left unfinished');
    expect(await unfinished()).toEqual([]);
    await next.stop();
  });
});

describe('when postmaster.pid is wrong', () => {
  const pidFile = () => join(scratch.dataDir, 'postgres', 'postmaster.pid');
  let stranger: ChildProcess | undefined;
  afterEach(() => stranger?.kill('SIGKILL'));

  async function crashAndPointTo(pid: number): Promise<void> {
    const owner = scratch.startOwner(launcher);
    const server = await owner.ready;
    process.kill(server.pid, 'SIGKILL');
    await owner.kill();
    await writeFile(pidFile(), (await readFile(pidFile(), 'utf8')).replace(/^\d+/, String(pid)));
  }

  it('a dead process in it is no obstacle', async () => {
    const dead = spawn(process.execPath, ['-e', '']);
    await once(dead, 'exit');
    await crashAndPointTo(dead.pid!);
    const server = await scratch.start();
    expect(server.adopted).toBe(false);
    await server.stop();
  });

  it('a living process that only was given the same id is no obstacle either, and is left alone', async () => {
    const probe = scratch.startOwner(launcher);
    await probe.ready;
    const { uid, gid } = await stat(join(scratch.dataDir, 'postgres'));
    await probe.stop();
    // Of the same OS user as the server: PostgreSQL itself would not start over it.
    stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], process.getuid?.() === 0 ? { uid, gid, cwd: '/' } : {});
    await once(stranger, 'spawn');
    await crashAndPointTo(stranger.pid!);
    const server = await scratch.start();
    expect(server.adopted).toBe(false);
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
    await server.stop();
  });
});

describe('when two processes start on one folder', () => {
  withFreshFolder();
  it('exactly one runs the server', async () => {
    const owners = [scratch.startOwner(launcher), scratch.startOwner(launcher), scratch.startOwner(launcher)];
    const results = await Promise.allSettled(owners.map(({ ready }) => ready));
    const winners = results.filter(({ status }) => status === 'fulfilled');
    const refusals = results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as { code: string }).code] : []));
    expect(winners).toHaveLength(1);
    expect(refusals).toEqual(['data_folder_in_use', 'data_folder_in_use']);
    await Promise.all(owners.map((owner, index) => (results[index]!.status === 'fulfilled' ? owner.stop() : owner.exited)));
  });

  it('the id of a dead owner that another process has now is no obstacle', async () => {
    await writeFile(join(scratch.dataDir, 'owner.json'), JSON.stringify({ pid: process.ppid, processStartedAt: 'long ago', token: 'x' }));
    const server = await scratch.start();
    await server.stop();
    expect(await readFile(join(scratch.dataDir, 'owner.json'), 'utf8')).toBe('');
  });
});
