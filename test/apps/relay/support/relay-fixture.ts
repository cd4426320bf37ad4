import type { EventPublisher } from '#adapters/broker/kafka/publisher.js';
import { createLogger } from '#adapters/observability/logger.js';
import { createMetrics, type Metrics } from '#adapters/observability/metrics.js';
import { RelayLeadership } from '#adapters/postgres/relay-leadership.js';
import { ParkedRecords } from '#adapters/postgres/parked-records.js';
import { ListedParkedEvents } from '#apps/relay/src/parked-events.js';
import { Relay, RELAY } from '#apps/relay/src/relay.js';
import type { OpenLog } from '../../../support/event-log-postgres.js';

export interface TestRelay {
  readonly relay: Relay;
  readonly metrics: Metrics;
  /** What was logged, one JSON a line. */
  readonly lines: string[];
}

/** A relay of the log at `url`, started. */
export function startRelay(url: string, { log, pool }: OpenLog, publisher: EventPublisher): TestRelay {
  const metrics = createMetrics({ nodeMetrics: false });
  const lines: string[] = [];
  const relay = new Relay({
    log,
    leadership: new RelayLeadership({ url, name: RELAY, applicationName: 'test-relay' }),
    publisher,
    parked: new ListedParkedEvents(new ParkedRecords(pool), RELAY),
    clock: { nowMs: () => Date.parse('2026-01-05T10:00:31.000Z') },
    metrics,
    logger: createLogger({ process: 'test', level: 'info', stream: { write: (line) => void lines.push(line) } }),
  });
  relay.start();
  return { relay, metrics, lines };
}
