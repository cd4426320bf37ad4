import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '#adapters/postgres/embedded/index.js';

const PROGRAM = new URL('../../../dist/apps/projector/src/main.js', import.meta.url).pathname;

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(flags: string[], env: Record<string, string>): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...flags], { env: { PATH: process.env['PATH'], ...env } }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
    });
  });
}

const lastLine = ({ stdout }: Ended) => JSON.parse(stdout.trim().split('\n').at(-1)!) as Record<string, unknown>;

describe('the projector process', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'onefold-projector-'));
  let postgres: EmbeddedPostgres;
  beforeAll(async () => {
    postgres = await startEmbeddedPostgres({ dataDir });
  });
  afterAll(async () => {
    await postgres.stop();
    rmSync(dataDir, { recursive: true });
  });

  it('rebuilds and tells so in one line', async () => {
    const rebuilt = await run(['--rebuild'], { DATABASE_URL: postgres.url });
    expect(rebuilt).toMatchObject({ code: 0 });
    expect(lastLine(rebuilt)).toEqual({ rebuilt: true, events: 0, position: 0, seconds: expect.any(Number) as number });
    const digest = await run(['--digest'], { DATABASE_URL: postgres.url });
    // SHA-256 of nothing (FIPS 180-4).
    expect(lastLine(digest)).toEqual({ operations: 0, sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' });
  });

  it('serves until it is told to stop', async () => {
    const env = { PATH: process.env['PATH'], DATABASE_URL: postgres.url, PORT: '0' };
    const child = spawn(process.execPath, [PROGRAM], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const ready = JSON.parse(line) as { ready: boolean; process: string; url: string };
    expect(ready).toMatchObject({ ready: true, process: 'projector' });
    expect(await (await fetch(`${ready.url}/livez`)).json()).toEqual({ status: 'live' });
    expect((await fetch(`${ready.url}/readyz`)).status).toBe(200);
    expect(await (await fetch(`${ready.url}/metrics`)).text()).toContain('onefold_feed_position');
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });

  it('says in words what is missing', async () => {
    const without = await run([], {});
    expect(without.code).toBe(1);
    expect(without.stderr).toContain('DATABASE_URL');
    expect(without.stderr).not.toContain('    at ');
    const nowhere = await run(['--rebuild'], { ONEFOLD_DATA_DIR: join(dataDir, 'none') });
    expect(nowhere.code).toBe(1);
    expect(nowhere.stderr).toContain('ONEFOLD_DATA_DIR');
    const inUse = await run(['--rebuild'], { ONEFOLD_DATA_DIR: dataDir });
    expect(inUse.code).toBe(1);
    expect(inUse.stderr).toMatch(/in use|another process/i);
    expect((await run(['--rebuild', '--digest'], {})).code).toBe(2);
    expect((await run(['--now'], {})).stderr).toContain('Usage');
  });
});
