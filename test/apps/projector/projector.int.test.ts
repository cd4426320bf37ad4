import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import { directFeeds } from '#adapters/feed/direct-feed.js';
import { createLogger } from '#adapters/observability/logger.js';
import { createMetrics } from '#adapters/observability/metrics.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { migrate } from '#adapters/postgres/migrate.js';
import { ProjectorModule } from '#apps/projector/src/projector.module.js';
import { streamOf, type OperationEvent } from '#domain';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.js';

let testDatabase: TestDatabase;
let pool: Pool;
let log: PostgresEventLog;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  pool = openPool({ url: testDatabase.url, durable: false });
  await migrate(pool);
  log = new PostgresEventLog(pool, { url: testDatabase.url, hashing: nodeHashing });
});
afterAll(async () => {
  await log.close();
  await pool.end();
  await testDatabase.drop();
});

async function plan(operationId: string): Promise<bigint> {
  const event = {
    type: 'OperationPlanned',
    data: {
      operation_id: operationId,
      action_type: 'refund.create',
      identity: { order: 1 },
      provider: 'payments',
      policy: {},
      source: null,
    },
  } as unknown as OperationEvent;
  const metadata = { tenant: 't1', at: '2026-01-05T10:00:00.000Z', actor: 'a', correlation: 'c', causation: null, traceparent: null };
  const result = await log.append({
    stream: streamOf(operationId),
    expectedRevision: 'no_stream',
    previousChain: null,
    events: [{ id: nodeHashing.uuid5(operationId), event, metadata }],
  });
  if (result.outcome !== 'written') throw new Error(`not written: ${result.outcome}`);
  return result.events[0]!.position;
}

const startProjector = () => {
  const metrics = createMetrics({ nodeMetrics: false });
  const logger = createLogger({ process: 'test', level: 'silent' });
  const openFeed = directFeeds({ log, checkpoints: new Checkpoints(pool) });
  return {
    metrics,
    app: NestFactory.createApplicationContext(ProjectorModule.with({ log, derivedPool: pool, openFeed, metrics, logger }), {
      logger: false,
    }),
  };
};

async function projected(): Promise<string[]> {
  const { rows } = await pool.query<{ operation_id: string }>('select operation_id from onefold.operation_view order by position');
  return rows.map(({ operation_id }) => operation_id);
}

describe('the projector as an application', () => {
  it('projects while it runs, stops when it is closed, and goes on from where it was', async () => {
    const first = startProjector();
    const app = await first.app;
    const position = await plan('op_1');
    // The gauge moves behind the checkpoint, so waiting for it waits for both.
    await expect.poll(async () => (await first.metrics.feedPosition.get()).values[0]?.value, { timeout: 10_000 }).toBe(Number(position));
    expect(await projected()).toEqual(['op_1']);
    await app.close();

    await plan('op_2');
    expect(await projected()).toEqual(['op_1']);

    const second = startProjector();
    const again = await second.app;
    await expect.poll(projected, { timeout: 10_000 }).toEqual(['op_1', 'op_2']);
    await again.close();
  });
});
