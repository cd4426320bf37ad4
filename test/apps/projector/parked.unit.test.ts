import { expect, it } from 'vitest';
import type { FeedOptions } from '#adapters/feed/feed.js';
import { createLogger } from '#adapters/observability/logger.js';
import { createMetrics } from '#adapters/observability/metrics.js';
import type { Pool } from '#adapters/postgres/database.js';
import { ProjectorService } from '#apps/projector/src/projector.module.js';
import { LogUnavailable, UnreadableEvent, type EventLog } from '#domain';

/** What the projector does about a parked record of an operation whose stream can't be read for this reason. */
function lookAfterParking(error: Error): Promise<void> {
  let options!: FeedOptions;
  const log = { readStream: () => Promise.reject(error) } as unknown as EventLog;
  const openFeed = (given: FeedOptions) => {
    options = given;
    return { start: () => undefined, stop: async () => undefined, healthy: () => true, lag: async () => 0 };
  };
  const logger = createLogger({ process: 'test', level: 'silent' });
  new ProjectorService({ log, derivedPool: {} as Pool, openFeed, metrics: createMetrics({ nodeMetrics: false }), logger });
  return options.onParked('op_x');
}

it('a parked record whose stream is damaged holds up nothing behind it', async () => {
  await lookAfterParking(new UnreadableEvent('operation-op_x', 7n));
});

it('while the log is away the feed waits, and the record is looked at later', async () => {
  await expect(lookAfterParking(new LogUnavailable('away'))).rejects.toThrow(LogUnavailable);
});
