import type { KafkaSettings } from '../../configuration/configuration.js';
import type { Logger } from '../../observability/logger.js';
import { checkBroker } from './api-versions.js';
import { createKafka } from './client.js';
import { ensureTopics } from './topics.js';

/** Makes sure, before anything is read or written, that the brokers are such as can be worked with, and that the topics are there. */
export async function openBroker(
  { brokers, partitions, replicationFactor }: KafkaSettings,
  { clientId, allowWeakDurability, logger }: { readonly clientId: string; readonly allowWeakDurability: boolean; readonly logger: Logger },
): Promise<void> {
  await checkBroker(brokers);
  await ensureTopics(createKafka({ brokers, clientId, logger }), { partitions, replicationFactor, allowWeakDurability });
}
