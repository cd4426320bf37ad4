// What a relay process runs, with its ports wrapped, and with RELAY_TOPIC in place of the one topic of an installation, so that several
// cases can share a broker. It kills itself at CRASH_POINT, when that is reached for the CRASH_OCCURRENCE-th time; without CRASH_POINT it is
// the product as it is.
import 'reflect-metadata';
import { runService } from '#adapters/runtime/service.js';
import { relayService } from '#apps/relay/src/start-relay.js';
import { reachedFromEnvironment } from './crash-at.js';
import { relayDecoration } from './decorate-relay.js';

const { RELAY_TOPIC: topic, KAFKA_BROKERS: brokers = '' } = process.env;
if (!topic) throw new Error('RELAY_TOPIC must name the topic of the case.');
const reached = reachedFromEnvironment();
await runService(relayService({ topic, ...(reached && { decorate: relayDecoration(brokers.split(','), reached) }) }));
