import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { chainIsIntact } from '#adapters/event-store/encoding.js';
import { startEmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import { migrate } from '#adapters/postgres/migrate.js';
import { chainOfAppends } from '../../../../support/event-log-load.js';
import { openLog, withPool } from '../../../../support/event-log-postgres.js';
import { numbered, readToEnd } from '../../../../support/event-log-samples.js';

/** A server of its own, since it is killed. */
let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'onefold-test-crash-'));
});
afterEach(() => rm(dataDir, { recursive: true }));

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

it('every acknowledged append outlives SIGKILL of the server under load, once', { timeout: 90_000 }, async () => {
  const port = await freePort();
  let server = await startEmbeddedPostgres({ dataDir, port });
  await withPool(server.url, async (pool) => void (await migrate(pool)));
  const opened = openLog(server.url);
  let acknowledged = 0;
  let wake: () => void = () => undefined;
  const load = Promise.all(
    numbered(16).map(() =>
      chainOfAppends(opened.log, 60, () => {
        acknowledged++;
        wake();
      }),
    ),
  );
  for (const mark of [150, 500]) {
    // In the midst of the load: as soon as so many are acknowledged, with as many more under way.
    while (acknowledged < mark) await Promise.race([new Promise<void>((resolve) => (wake = resolve)), load]);
    process.kill(server.pid, 'SIGKILL');
    await server.stop();
    server = await startEmbeddedPostgres({ dataDir, port });
  }
  const chains = await load;
  const events = await readToEnd(opened.log, 0n, 1_000);
  expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => BigInt(index + 1)));
  expect(events).toHaveLength(16 * 60);
  const streams = await opened.log.readStreams(chains.map(({ stream }) => stream));
  for (const { stream, ids } of chains) {
    expect(streams.get(stream)!.map(({ id }) => id)).toEqual(ids);
    expect(chainIsIntact(nodeHashing, streams.get(stream)!)).toBe(true);
  }
  await opened.close();
  await server.stop();
});
