// The command API with everything in place but a log that forgets: what the same endpoint costs when nothing is stored or sent.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { createSealer } from '#adapters/crypto/sealer.js';
import { encodeAppend, recordedEvents } from '#adapters/event-store/encoding.js';
import { createLogger } from '#adapters/observability/logger.js';
import { createMetrics } from '#adapters/observability/metrics.js';
import { packageRoot } from '#adapters/package-root.js';
import { createCommandApi } from '#apps/command-api/src/app.js';
import type { EventLog } from '#domain';

const log: EventLog = {
  append: async (request) => ({ outcome: 'written', events: recordedEvents(request, encodeAppend(nodeHashing, request), 1n) }),
  readStream: async () => [],
  readStreams: async (streams) => new Map(streams.map((stream) => [stream, []])),
  readAll: async () => [],
  head: async () => 0n,
  onAppended: () => () => undefined,
};

const nowhere = 'http://127.0.0.1:9';
const catalogue = loadCatalogue(join(packageRoot, 'onefold.yaml'), { LAB_URL: nowhere, SMTP_URL: 'smtp://127.0.0.1:9' });
const app = await createCommandApi({
  log,
  clock: { nowMs: () => Date.now() },
  hashing: nodeHashing,
  sealer: createSealer([{ version: 'v1', key: Buffer.alloc(32, 1) }]),
  dataKeys: { load: async () => new Map(), destroy: async () => 0 },
  catalogue,
  identitySecrets: [{ version: 'v1', secret: 'bench'.repeat(8) }],
  apiKeys: [{ key: process.env['BENCH_KEY']!, tenant: 'bench', role: 'admin' }],
  apiKeyPepper: 'bench',
  view: { list: async () => ({ operations: [], nextCursor: null }) },
  parked: null,
  lane: null,
  limits: { rateLimitPerSecond: 0 },
  readiness: [],
  logger: createLogger({ process: 'bench', level: 'warn' }),
  metrics: createMetrics(),
  newId: () => randomUUID(),
});
await app.listen(0, '127.0.0.1');
process.stdout.write(`${JSON.stringify({ ready: true, api: await app.getUrl() })}\n`);
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)));
