// Of its names, only some can be imported by themselves: it is CommonJS, and Node has to guess them.
import kafkajs, { type Kafka, type LogEntry } from 'kafkajs';
import type { Logger } from '../../observability/logger.js';
import { tameRequestQueue } from './request-queue.js';

export interface KafkaOptions {
  /** `host:port`, at least one; the others of the cluster are learned from it. */
  readonly brokers: readonly string[];
  /** Told to the brokers, for their quotas and logs. */
  readonly clientId: string;
  readonly logger: Logger;
}

/** A produce request may wait at the broker for the other replicas; a fetch for data. */
const REQUEST_TIMEOUT_MS = 30_000;
/** The client's own 1 s is too short for a broker that is just starting. */
const CONNECTION_TIMEOUT_MS = 3_000;

/**
 * A client of the cluster. A `Kafka` of kafkajs keeps state of its consumers that two of one group would clear for each other: each consumer
 * needs one of its own.
 * @throws Error where kafkajs is not the version that this was written for
 */
export function createKafka({ brokers, clientId, logger }: KafkaOptions): Kafka {
  tameRequestQueue();
  return new kafkajs.Kafka({
    brokers: [...brokers],
    clientId,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    logLevel: kafkajs.logLevel.WARN,
    logCreator: () => logInto(logger),
  });
}

/** While brokers are away the client repeats itself several times a second. */
const REPEAT_AFTER_MS = 1_000;
/** Said whenever a producer is made, and wrong for ours: the number of retries is chosen, and what follows the last one as well. */
const EXPECTED = /^Limiting retries for the idempotent producer/;
/** What a message may give away of itself: the names of socket errors. The rest of it can hold addresses, keys and group members. */
const SOCKET_ERROR = /\bE[A-Z]{4,15}\b/;

/**
 * The client's lines without their text. None is an error of ours: what can't be mended by a retry reaches the caller as a rejection.
 */
export function logInto(logger: Logger, nowMs: () => number = () => performance.now()): (entry: LogEntry) => void {
  const toldAtMs = new Map<string, number>();
  return ({ namespace, level, log }) => {
    if (EXPECTED.test(log.message)) return;
    const code = SOCKET_ERROR.exec(`${log.message} ${String(log.error ?? '')}`)?.[0];
    const what = `${namespace} ${level} ${code}`;
    const now = nowMs();
    if (now - (toldAtMs.get(what) ?? -Infinity) < REPEAT_AFTER_MS) return;
    toldAtMs.set(what, now);
    const fields = {
      context: namespace || 'Kafka',
      ...(code && { code }),
      count: asNumber(log.retryCount),
      delay_ms: asNumber(log.retryTime),
    };
    if (level === kafkajs.logLevel.ERROR) logger.warn(fields, 'the Kafka client met an error');
    else logger.info(fields, 'the Kafka client warned');
  };
}

function asNumber(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
