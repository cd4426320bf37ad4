import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import kafkajs, { type Admin } from 'kafkajs';
import { checkBroker } from '#adapters/broker/kafka/api-versions.js';
import {
  ensureTopics,
  OPERATION_EVENTS_TOPIC,
  PARKED_TOPIC,
  TopicNotCreated,
  WeakTopic,
  waitForLeaders,
} from '#adapters/broker/kafka/topics.js';
import { kafkaBrokers, kafkaClient, noKafka } from '../../../../support/kafka.js';

const ONE = { partitions: 3, replicationFactor: 1 };

describe.skipIf(noKafka())('the topics', () => {
  let admin: Admin;
  beforeAll(async () => {
    admin = kafkaClient().admin();
    await admin.connect();
  });
  afterAll(() => admin.disconnect());
  beforeEach(async () => {
    const ours = (await admin.listTopics()).filter((topic) => [OPERATION_EVENTS_TOPIC, PARKED_TOPIC].includes(topic));
    if (ours.length > 0) await admin.deleteTopics({ topics: ours });
    await expect.poll(async () => (await admin.listTopics()).includes(OPERATION_EVENTS_TOPIC), { timeout: 10_000 }).toBe(false);
  });

  async function settingsOf(topic: string): Promise<Record<string, string>> {
    const { resources } = await admin.describeConfigs({
      resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
      includeSynonyms: false,
    });
    return Object.fromEntries(resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]));
  }

  it('the broker of the test run is one that this program can talk to', async () => {
    await checkBroker(kafkaBrokers());
  });

  it('are created with what an acknowledgement promises, once, also by two at a time', async () => {
    await Promise.all([ensureTopics(kafkaClient(), ONE), ensureTopics(kafkaClient(), ONE)]);
    await ensureTopics(kafkaClient(), ONE);
    for (const topic of [OPERATION_EVENTS_TOPIC, PARKED_TOPIC]) {
      expect(await settingsOf(topic)).toMatchObject({
        'cleanup.policy': 'delete',
        'unclean.leader.election.enable': 'false',
        'min.insync.replicas': '1',
        'retention.bytes': '-1',
      });
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      expect(topics[0]!.partitions).toHaveLength(3);
    }
  });

  it('that ask for more replicas than there are brokers are not created, and the setting is named', async () => {
    const failed = ensureTopics(kafkaClient(), { partitions: 1, replicationFactor: 9 });
    await expect(failed).rejects.toThrow(TopicNotCreated);
    await expect(failed).rejects.toThrow(/ONEFOLD_KAFKA_REPLICATION_FACTOR/);
  });

  it.each([
    ['unclean.leader.election.enable', 'true'],
    ['cleanup.policy', 'compact'],
    ['max.message.bytes', '1000000'],
  ])('that exist with %s = %s are refused, unless weak durability is allowed', async (name, value) => {
    const configEntries = [{ name: 'max.message.bytes', value: '5000000' }].filter((entry) => entry.name !== name);
    await admin.createTopics({
      topics: [
        { topic: OPERATION_EVENTS_TOPIC, numPartitions: 1, replicationFactor: 1, configEntries: [...configEntries, { name, value }] },
      ],
      waitForLeaders: false,
    });
    await waitForLeaders(admin, OPERATION_EVENTS_TOPIC);
    const refused = ensureTopics(kafkaClient(), ONE);
    await expect(refused).rejects.toThrow(WeakTopic);
    await expect(refused).rejects.toMatchObject({ topic: OPERATION_EVENTS_TOPIC, setting: name, value });
    await ensureTopics(kafkaClient(), { ...ONE, allowWeakDurability: true });
  });

  it('with fewer replicas than asked for are refused', async () => {
    await ensureTopics(kafkaClient(), ONE);
    await expect(ensureTopics(kafkaClient(), { partitions: 3, replicationFactor: 3 })).rejects.toMatchObject({
      setting: 'replication factor',
      value: '1',
    });
  });
});
