import { randomUUID } from 'node:crypto';
import { ConfigResourceTypes, Partitioners, type PartitionMetadata } from 'kafkajs';
import { afterEach, describe, expect, it } from 'vitest';
import { UnencodableEvent } from '#adapters/broker/cloud-events.js';
import { KafkaPublisher, PublishUncertain } from '#adapters/broker/kafka/publisher.js';
import { createLogger } from '#adapters/observability/logger.js';
import type { RecordedEvent } from '#domain';
import { failure, freshStream, sampleMetadata } from '../../../../support/event-log-samples.js';
import { freshTopic, kafkaBrokers, kafkaClient, noKafka } from '../../../../support/kafka.js';
import { FaultySockets } from './faulty-sockets.js';
import { distinctIds, firstSeen, readTopic } from './topic-reader.js';

const PARTITIONS = 4;
const logger = createLogger({ process: 'test', level: 'silent' });

/** A log of `count` events over `streams` operations, taken in turns. */
function recordedEvents(count: number, streams: number, text = 'event'): RecordedEvent[] {
  const names = Array.from({ length: streams }, freshStream);
  return Array.from({ length: count }, (_, index) => ({
    id: randomUUID(),
    stream: names[index % streams]!,
    revision: Math.floor(index / streams),
    position: BigInt(index + 1),
    chain: 'c'.repeat(64),
    event: failure(`${text} ${index}`),
    metadata: sampleMetadata(),
  }));
}

const byStream = (events: readonly RecordedEvent[]) => firstSeen(events.map((event) => ({ partition: 0, offset: 0, key: null, event })));

describe.skipIf(noKafka())('publishing to a broker', () => {
  const publishers: KafkaPublisher[] = [];
  afterEach(() => Promise.all(publishers.splice(0).map((publisher) => publisher.close())));

  function open(topic: string, kafka = kafkaClient(), sendTimeoutMs?: number): KafkaPublisher {
    const publisher = new KafkaPublisher({ kafka, topic, logger, ...(sendTimeoutMs && { sendTimeoutMs }) });
    publishers.push(publisher);
    return publisher;
  }

  it('stores every event once, whole, in the order of its operation, in the partition that Java clients expect', async () => {
    const topic = await freshTopic(PARTITIONS);
    const publisher = open(topic);
    const events = recordedEvents(3_500, 30);
    await publisher.publish(events.slice(0, 2_500));
    await publisher.publish(events.slice(2_500));
    const records = await readTopic(topic, ({ length }) => length >= events.length);
    expect(records).toHaveLength(events.length);
    expect(firstSeen(records)).toEqual(byStream(events));
    const choose = Partitioners.DefaultPartitioner();
    const partitionMetadata = Array.from({ length: PARTITIONS }, (_, partitionId) => ({ partitionId, leader: 1 }) as PartitionMetadata);
    for (const { key, partition } of records) {
      expect(partition).toBe(choose({ topic, partitionMetadata, message: { key, value: null } }));
    }
  });

  it('nothing to publish is no work', async () => {
    await open(await freshTopic(1)).publish([]);
  });

  it('an answer that never comes leaves it uncertain; publishing again with a new producer loses nothing', async () => {
    const topic = await freshTopic(2);
    const sockets = new FaultySockets();
    const publisher = open(topic, sockets.client(kafkaBrokers()), 1_000);
    const events = recordedEvents(40, 4);
    await publisher.publish(events.slice(0, 20));
    const silenced = sockets.silenceNextProduce();
    const uncertain = publisher.publish(events.slice(20));
    await silenced;
    await expect(uncertain).rejects.toThrow(PublishUncertain);
    await publisher.publish(events.slice(20));
    // What was stored without our knowing is there twice: more than the 40, and nothing out of order.
    const records = await readTopic(topic, (read) => distinctIds(read) === 40 && read.length > 40);
    expect(firstSeen(records)).toEqual(byStream(events));
    sockets.close();
  });

  it('a refused batch ends the producer; the next publish has a new one', async () => {
    const topic = await freshTopic(1);
    await setMessageBytesMax(topic, 2_000);
    const publisher = open(topic);
    const large = recordedEvents(3, 1, 'x'.repeat(3_000));
    const refused = publisher.publish(large);
    await expect(refused).rejects.toThrow(PublishUncertain);
    await expect(refused).rejects.toMatchObject({ cause: { type: 'MESSAGE_TOO_LARGE' } });
    await setMessageBytesMax(topic, 1_000_000);
    await publisher.publish(large);
    expect(firstSeen(await readTopic(topic, (read) => distinctIds(read) === 3))).toEqual(byStream(large));
  });

  it('a topic that is not there leaves it uncertain, within the bound', async () => {
    await expect(open('no-such-topic', kafkaClient(), 2_000).publish(recordedEvents(1, 1))).rejects.toThrow(PublishUncertain);
  });

  it('an event that can not be encoded stops its whole page before anything is sent', async () => {
    const topic = await freshTopic(1);
    const publisher = open(topic);
    const [first, second] = recordedEvents(2, 1) as [RecordedEvent, RecordedEvent];
    const broken = { ...second, metadata: { ...second.metadata, actor: 'a\u0000' } };
    await expect(publisher.publish([first, broken])).rejects.toThrow(UnencodableEvent);
    await publisher.publish([first]);
    expect(await readTopic(topic, ({ length }) => length > 0)).toHaveLength(1);
  });

  it('sends nothing once the signal has fired', async () => {
    const publisher = open(await freshTopic(1));
    await expect(publisher.publish(recordedEvents(5, 1), AbortSignal.abort())).rejects.toThrow(PublishUncertain);
  });

  it('takes one page at a time', async () => {
    const publisher = open(await freshTopic(1));
    const first = publisher.publish(recordedEvents(5, 1));
    await expect(publisher.publish(recordedEvents(5, 1))).rejects.toThrow(/under way/);
    await first;
  });
});

async function setMessageBytesMax(topic: string, bytes: number): Promise<void> {
  const admin = kafkaClient().admin();
  await admin.connect();
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic };
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ ...resource, configEntries: [{ name: 'max.message.bytes', value: String(bytes) }] }],
  });
  // A changed setting reaches the partition a moment after it is accepted.
  const inForce = async () => {
    const { resources } = await admin.describeConfigs({ resources: [resource], includeSynonyms: false });
    return resources[0]!.configEntries.find(({ configName }) => configName === 'max.message.bytes')?.configValue;
  };
  await expect.poll(inForce, { timeout: 10_000 }).toBe(String(bytes));
  await admin.disconnect();
}
