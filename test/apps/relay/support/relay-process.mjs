// A relay as a process of its own, to be stopped and woken. Says on its output what it is, one JSON a line.
import { createKafka } from '#adapters/broker/kafka/client.js';
import { KafkaPublisher } from '#adapters/broker/kafka/publisher.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import { createLogger } from '#adapters/observability/logger.js';
import { createMetrics } from '#adapters/observability/metrics.js';
import { openPool } from '#adapters/postgres/database.js';
import { RelayLeadership } from '#adapters/postgres/relay-leadership.js';
import { ParkedRecords } from '#adapters/postgres/parked-records.js';
import { ListedParkedEvents } from '#apps/relay/src/parked-events.js';
import { Relay, RELAY } from '#apps/relay/src/relay.js';

const { url, brokers, topic } = JSON.parse(process.argv[2]);
const logger = createLogger({ process: 'relay', level: 'info' });
const pool = openPool({ url });
const kafka = createKafka({ brokers: brokers.split(','), clientId: 'relay', logger: createLogger({ process: 'kafka', level: 'silent' }) });
const relay = new Relay({
  log: new PostgresEventLog(pool, { url, hashing: nodeHashing }),
  leadership: new RelayLeadership({ url, name: RELAY }),
  publisher: new KafkaPublisher({ kafka, topic, logger }),
  parked: new ListedParkedEvents(new ParkedRecords(pool), RELAY),
  clock: { nowMs: () => Date.now() },
  metrics: createMetrics({ nodeMetrics: false }),
  logger,
});
relay.start();
process.on('SIGTERM', () => void relay.stop().then(() => process.exit(0)));
