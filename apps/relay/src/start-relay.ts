import { NestFactory } from '@nestjs/core';
import { createKafka } from '#adapters/broker/kafka/client.js';
import { openBroker } from '#adapters/broker/kafka/open-broker.js';
import { KafkaPublisher, type EventPublisher } from '#adapters/broker/kafka/publisher.js';
import { ParkedRecords } from '#adapters/postgres/parked-records.js';
import { PostgresClock } from '#adapters/postgres/postgres-clock.js';
import { RelayLeadership } from '#adapters/postgres/relay-leadership.js';
import { openStore } from '#adapters/runtime/open-store.js';
import type { RunningService, ServiceContext, ServiceDefinition } from '#adapters/runtime/service.js';
import { ListedParkedEvents } from './parked-events.js';
import { RELAY, type RelayOptions } from './relay.js';
import { RelayModule, RelayService } from './relay.module.js';

/** Ports wrapped by the program that composes this one: what tests of faults need in place of hooks. */
export interface RelayDecoration {
  publisher?(publisher: EventPublisher): EventPublisher;
  /** Its terms move the checkpoint. */
  leadership?(leadership: RelayOptions['leadership']): RelayOptions['leadership'];
}

export interface StartRelayOptions {
  /** Where the events go, which has to be there; left out: the topic of the operations' events, which is made where it is missing. */
  readonly topic?: string;
  readonly decorate?: RelayDecoration;
}

const CLIENT_ID = 'onefold-relay';

/** The relay as a process: one of several leads and publishes, the others stand by. */
export function relayService(options: StartRelayOptions = {}): ServiceDefinition {
  return { name: 'relay', needs: ['DATABASE_URL', 'KAFKA_BROKERS'], start: (context) => startRelay(context, options) };
}

async function startRelay({ configuration, logger, metrics }: ServiceContext, options: StartRelayOptions): Promise<RunningService> {
  const { topic, decorate = {} } = options;
  const { allowWeakDurability } = configuration;
  const databaseUrl = configuration.databaseUrl!;
  const kafka = configuration.kafka!;
  await openBroker(kafka, { clientId: CLIENT_ID, allowWeakDurability, logger });
  const store = await openStore({ ...configuration, databaseUrl, applicationName: CLIENT_ID, logger });
  const client = createKafka({ brokers: kafka.brokers, clientId: CLIENT_ID, logger });
  const publisher = new KafkaPublisher({ kafka: client, logger, ...(topic !== undefined && { topic }) });
  const leadership = new RelayLeadership({ url: databaseUrl, applicationName: `${CLIENT_ID}-leader`, name: RELAY });
  let clock: PostgresClock | undefined;
  const close = async () => {
    clock?.stop();
    await publisher.close();
    await store.close();
  };
  try {
    clock = await PostgresClock.start(store.pool, (err) => logger.warn({ err }, 'the database clock could not be read'));
    const module = RelayModule.with({
      log: store.log,
      leadership: decorate.leadership?.(leadership) ?? leadership,
      publisher: decorate.publisher?.(publisher) ?? publisher,
      parked: new ListedParkedEvents(new ParkedRecords(store.pool), RELAY),
      clock,
      logger,
      metrics,
    });
    const app = await NestFactory.createApplicationContext(module, { logger: false });
    const service = app.get(RelayService);
    const stop = async () => {
      await app.close();
      await close();
    };
    const readiness = [
      { name: 'event_log', check: () => store.check() },
      // Never a reason not to be ready: a restart would mend nothing. It is told, and watched as a metric.
      { name: 'oldest_unpublished_seconds', check: async () => service.relay.status().oldestUnpublishedSeconds },
      { name: 'role', check: async () => (service.relay.status().isLeader ? 'leader' : 'standby') },
    ];
    return { readiness, url: null, stop };
  } catch (error) {
    await close();
    throw error;
  }
}
