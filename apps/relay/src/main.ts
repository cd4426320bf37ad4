// The relay: publishes the event log to Kafka. One process of several leads; the others stand by.
import 'reflect-metadata';
import { runService } from '#adapters/runtime/service.js';
import { relayService } from './start-relay.js';

await runService(relayService());
