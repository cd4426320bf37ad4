import { EVENT_STORES, FEEDS, type Configuration, type KafkaSettings } from './configuration.js';
import type { EnvironmentReader } from './environment-reader.js';

/** A topic's partitions can be raised later only by breaking the order of what is under way, so that a few more than needed are made. */
const PARTITIONS_INITIAL = 8;
const PARTITIONS_MAX = 256;
/** One replica may be lost without losing an event, and a second one be away without stopping. */
const REPLICATION_FACTOR_INITIAL = 3;
const REPLICATION_FACTOR_MAX = 9;
/** `host:port`, the host a name, an IPv4 address, or an IPv6 address in brackets. */
const BROKER = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):\d{1,5}$/;
const BROKERS_MAX = 32;
/** Well above the pauses of a busy machine; what a dead process had is idle for as long. */
const SESSION_TIMEOUT_INITIAL_MS = 30_000;
/** From what a broker takes as it comes (`group.min.session.timeout.ms`, Kafka broker configuration), which is two heartbeats of ours. */
const SESSION_TIMEOUT_MS = { min: 6_000, max: 300_000 };

export function readEventStore(reader: EnvironmentReader): Pick<Configuration, 'eventStore' | 'eventStoreUrl'> {
  const eventStore = reader.word('EVENT_STORE', EVENT_STORES) ?? 'postgres';
  const eventStoreUrl = reader.secret('EVENTSTORE_URL') ?? null;
  if (eventStoreUrl !== null && !/^(?:esdb|kurrentdb|kurrent)(?:\+discover)?:\/\/[^/?\s]+/.test(eventStoreUrl)) {
    reader.fault(
      'EVENTSTORE_URL',
      'Must be an EventStoreDB connection string.',
      'Write for example esdb://user:password@host:2113?tls=true.',
    );
  }
  if (eventStore === 'eventstoredb' && eventStoreUrl === null) {
    reader.fault(
      'EVENTSTORE_URL',
      'Is needed with EVENT_STORE=eventstoredb.',
      'Write for example esdb://user:password@host:2113?tls=true.',
    );
  }
  return { eventStore, eventStoreUrl };
}

export function readFeed(reader: EnvironmentReader): Pick<Configuration, 'feed' | 'kafka'> {
  const feed = reader.word('FEED', FEEDS) ?? 'direct';
  const kafka = readKafka(reader);
  if (feed === 'kafka' && reader.text('KAFKA_BROKERS') === undefined) {
    reader.fault('KAFKA_BROKERS', 'Is needed with FEED=kafka.', 'Write host:port of one broker or more, separated by commas.');
  }
  return { feed, kafka };
}

function readKafka(reader: EnvironmentReader): KafkaSettings | null {
  const partitions = reader.integer('ONEFOLD_KAFKA_PARTITIONS', { min: 1, max: PARTITIONS_MAX }) ?? PARTITIONS_INITIAL;
  const replicationFactor =
    reader.integer('ONEFOLD_KAFKA_REPLICATION_FACTOR', { min: 1, max: REPLICATION_FACTOR_MAX }) ?? REPLICATION_FACTOR_INITIAL;
  const sessionTimeoutMs = reader.integer('ONEFOLD_KAFKA_SESSION_TIMEOUT_MS', SESSION_TIMEOUT_MS) ?? SESSION_TIMEOUT_INITIAL_MS;
  const text = reader.text('KAFKA_BROKERS');
  if (text === undefined) return null;
  const brokers = text.split(',').map((broker) => broker.trim());
  const broken = brokers.findIndex((broker) => !BROKER.test(broker) || Number(broker.slice(broker.lastIndexOf(':') + 1)) > 65_535);
  if (broken >= 0) {
    reader.fault(`KAFKA_BROKERS[${broken + 1}]`, 'Must be host:port.', 'Write for example kafka-1:9092,kafka-2:9092.');
  } else if (brokers.length > BROKERS_MAX) {
    reader.fault('KAFKA_BROKERS', `Takes at most ${BROKERS_MAX} brokers.`, 'Name a few of the cluster; the others are learned from them.');
  }
  return { brokers, partitions, replicationFactor, sessionTimeoutMs };
}
