import { randomBytes } from 'node:crypto';
import { createKafka } from '#adapters/broker/kafka/client.js';
import { waitForLeaders } from '#adapters/broker/kafka/topics.js';
import { createLogger } from '#adapters/observability/logger.js';
import { startKafkaCluster } from '../../stack/kafka/kafka-cluster.js';

/** Several, so that operations are spread over them. */
const PARTITIONS = 3;

export interface CaseTopic {
  /** `host:port` each. */
  readonly brokers: readonly string[];
  readonly name: string;
}

/** One Kafka broker with a topic for each case: `KAFKA_BROKERS`, or one of our own. */
export class FaultBroker {
  private constructor(
    private readonly brokers: readonly string[],
    readonly stop: () => Promise<void>,
  ) {}

  /** @throws KafkaUnavailable where Java or Maven is missing */
  static async start(): Promise<FaultBroker> {
    const given = process.env['KAFKA_BROKERS'];
    if (given) return new FaultBroker(given.split(','), () => Promise.resolve());
    const cluster = await startKafkaCluster({ brokers: 1 });
    return new FaultBroker(cluster.bootstrap.split(','), () => cluster.stop());
  }

  async createTopic(): Promise<CaseTopic> {
    const { brokers } = this;
    const name = `case-${randomBytes(6).toString('hex')}`;
    const logger = createLogger({ process: 'faults', level: 'silent' });
    const admin = createKafka({ brokers, clientId: 'onefold-faults', logger }).admin();
    await admin.connect();
    try {
      // Replicated as the cluster's default says.
      await admin.createTopics({ topics: [{ topic: name, numPartitions: PARTITIONS, replicationFactor: -1 }], waitForLeaders: false });
      await waitForLeaders(admin, name);
    } finally {
      await admin.disconnect();
    }
    return { brokers, name };
  }
}
