import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { encodeCloudEvent } from '#adapters/broker/cloud-events.js';
import type { RecordedEvent } from '#domain';
import { topicFacts } from '../../../proof/gather/topic-facts.js';
import { freshTopic, kafkaBrokers, kafkaClient, noKafka } from '../../support/kafka.js';
import { failure, freshStream, sampleMetadata } from '../../support/event-log-samples.js';

describe.skipIf(noKafka())('the facts of a topic', () => {
  it('hold every record, those that nobody can read too, and the text only where a canary stands', async () => {
    const topic = await freshTopic(2);
    const event: RecordedEvent = {
      ...{ id: randomUUID(), stream: freshStream(), revision: 0, position: 1n, chain: 'a'.repeat(64) },
      ...{ event: failure('refused'), metadata: sampleMetadata() },
    };
    const { key, value, headers } = encodeCloudEvent(event);
    const damaged = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'ce_id'));
    const producer = kafkaClient().producer();
    await producer.connect();
    const messages = [
      { partition: 0, key, value, headers },
      { partition: 0, key, value: '{"note":"canary"}', headers: damaged },
      { partition: 1, key: 'nobody', value: 'no event' },
    ];
    for (const message of messages) await producer.send({ topic, messages: [message] });
    await producer.disconnect();

    const facts = await topicFacts(kafkaBrokers(), ['canary'], topic);
    const told = facts.map(({ partition, offset, eventId, operationId }) => [partition, offset, eventId, operationId]);
    expect(told.sort()).toEqual([
      [0, 0, event.id, key],
      [0, 1, '', key],
      [1, 0, '', 'nobody'],
    ]);
    expect(facts.map(({ text }) => text.includes('canary')).sort()).toEqual([false, false, true]);
    expect(facts.filter(({ text }) => text === '')).toHaveLength(2);
  });
});
