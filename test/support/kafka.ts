import { randomBytes } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import { inject } from 'vitest';
import { createKafka } from '#adapters/broker/kafka/client.js';
import { waitForLeaders } from '#adapters/broker/kafka/topics.js';
import { createLogger } from '#adapters/observability/logger.js';
import { brokerFiles, KafkaUnavailable } from '../../stack/kafka/broker-files.js';

/** The broker of the test run (`host:port`, comma separated: what `KAFKA_BROKERS` takes), or why there is none. */
export function kafkaForTests(): { readonly brokers: string } | { readonly reason: string } {
  return inject('kafka');
}

/** The addresses of the broker of the test run. For tests that are skipped where there is none: `describe.skipIf(noKafka)`. */
export function kafkaBrokers(): readonly string[] {
  const kafka = kafkaForTests();
  if ('reason' in kafka) throw new Error(`This test needs a Kafka broker: ${kafka.reason}`);
  return kafka.brokers.split(',');
}

/** Why the tests of a broker are to be skipped; false where there is one. `describe.skipIf(noKafka())` */
export function noKafka(): string | false {
  const kafka = kafkaForTests();
  return 'reason' in kafka ? kafka.reason : false;
}

/**
 * The same for tests that kill brokers and so start a cluster of their own, which takes Java and Maven also where `KAFKA_BROKERS` is set.
 * `describe.skipIf(await noOwnCluster())`; with `REQUIRE_KAFKA=true` it throws instead.
 */
export async function noOwnCluster(): Promise<string | false> {
  try {
    await brokerFiles();
    return false;
  } catch (error) {
    if (!(error instanceof KafkaUnavailable) || process.env['REQUIRE_KAFKA'] === 'true') throw error;
    return error.message;
  }
}

/** A client that logs nothing. Each consumer needs one of its own (kafkajs keeps state of groups in it). */
export function kafkaClient(brokers: readonly string[] = kafkaBrokers()): Kafka {
  return createKafka({ brokers, clientId: 'onefold-test', logger: createLogger({ process: 'test', level: 'silent' }) });
}

/** A name that no other test uses, for topics and consumer groups. */
export function freshName(prefix = 'test'): string {
  return `${prefix}-${randomBytes(8).toString('hex')}`;
}

/** A new topic; resolves when each of its partitions has a leader. Replicated as the cluster's default says. */
export async function freshTopic(partitions: number, brokers: readonly string[] = kafkaBrokers()): Promise<string> {
  const topic = freshName('topic');
  await createTopic(topic, partitions, brokers);
  return topic;
}

export async function createTopic(topic: string, numPartitions: number, brokers: readonly string[] = kafkaBrokers()): Promise<void> {
  const admin = kafkaClient(brokers).admin();
  await admin.connect();
  try {
    await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: -1 }], waitForLeaders: false });
    await waitForLeaders(admin, topic);
  } finally {
    await admin.disconnect();
  }
}
