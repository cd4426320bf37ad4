import type { EventLog } from '#domain';
import type { Configuration, KafkaSettings } from '../configuration/configuration.js';
import { directFeeds, type CheckpointStore } from '../feed/direct-feed.js';
import type { OpenFeed } from '../feed/feed.js';
import type { Logger } from '../observability/logger.js';
import type { Metrics } from '../observability/metrics.js';
import type { Pool } from '../postgres/database.js';
import { ParkedRecords } from '../postgres/parked-records.js';

export interface FeedSources {
  readonly log: EventLog;
  readonly checkpoints: CheckpointStore;
  /** Its commits wait for the disk. */
  readonly pool: Pool;
}

export interface FeedSettings extends Pick<Configuration, 'feed' | 'kafka' | 'allowWeakDurability'> {
  /** Shown by the broker, for example `onefold-projector`. */
  readonly clientId: string;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/**
 * How events reach the consumers of this process.
 * @throws UnsupportedBroker, BrokerUnreachable, WeakTopic, TopicNotCreated
 */
export async function openFeeds(sources: FeedSources, settings: FeedSettings): Promise<OpenFeed> {
  const parked = counted(new ParkedRecords(sources.pool), settings.metrics);
  return settings.feed === 'direct' ? directFeeds({ ...sources, parked }) : openKafkaFeeds(settings.kafka!, parked, settings);
}

type Parked = Pick<ParkedRecords, 'add'>;

function counted(parked: ParkedRecords, { parkedRecords }: Metrics): Parked {
  return {
    add: async (record) => {
      await parked.add(record);
      parkedRecords.inc({ consumer: record.consumer, reason: record.reason });
    },
  };
}

async function openKafkaFeeds(settings: KafkaSettings, parked: Parked, options: FeedSettings): Promise<OpenFeed> {
  const { clientId, logger } = options;
  // Loaded only where there is a broker: whoever runs on one machine does without their memory and start-up time.
  const [{ KafkaFeed }, { createKafka }, { openBroker }, { OPERATION_EVENTS_TOPIC }] = await Promise.all([
    import('../feed/kafka/kafka-feed.js'),
    import('../broker/kafka/client.js'),
    import('../broker/kafka/open-broker.js'),
    import('../broker/kafka/topics.js'),
  ]);
  await openBroker(settings, options);
  return ({ consumer, onError, onProgress, onParked }) =>
    new KafkaFeed({
      kafka: () => createKafka({ brokers: settings.brokers, clientId, logger }),
      topic: OPERATION_EVENTS_TOPIC,
      sessionTimeoutMs: settings.sessionTimeoutMs,
      consumer,
      parked,
      onError,
      onProgress,
      onParked,
    });
}
