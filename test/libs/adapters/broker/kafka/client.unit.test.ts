import { createRequire } from 'node:module';
import { logLevel, type LogEntry } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { createKafka, logInto } from '#adapters/broker/kafka/client.js';
import { KAFKAJS_VERSION, tameRequestQueue } from '#adapters/broker/kafka/request-queue.js';
import { createLogger } from '#adapters/observability/logger.js';

const silent = createLogger({ process: 'test', level: 'silent' });

interface Queue {
  pending: unknown[];
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  throttledUntil: number;
  push(request: object): void;
  checkPendingRequests(): void;
  destroy(): void;
}

function newQueue(maxInFlightRequests: number): Queue {
  const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as new (options: object) => Queue;
  const logger = { debug: () => undefined };
  return new RequestQueue({ maxInFlightRequests, requestTimeout: 1_000, clientId: 'c', broker: 'b', logger });
}

describe('the request queue of the client', () => {
  it('is pinned: another version of kafkajs is refused by name', () => {
    expect(() => tameRequestQueue('2.2.5')).toThrow(/kafkajs 2\.2\.5 .* 2\.2\.4/);
    expect(() => tameRequestQueue()).not.toThrow();
    const { version } = createRequire(import.meta.url)('kafkajs/package.json') as { version: string };
    expect(version).toBe(KAFKAJS_VERSION);
  });

  it('arms no timer while nothing is pending', () => {
    createKafka({ brokers: ['127.0.0.1:1'], clientId: 'test', logger: silent });
    const queue = newQueue(1);
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).toBeNull();
  });

  it('still sends what was throttled', async () => {
    tameRequestQueue();
    const queue = newQueue(1);
    queue.throttledUntil = Date.now() + 30;
    const sent = new Promise<void>((resolve) =>
      queue.push({ entry: { correlationId: 1, resolve, reject: () => undefined }, expectResponse: true, sendRequest: resolve }),
    );
    expect(queue.pending).toHaveLength(1);
    await sent;
    queue.destroy();
  });
});

describe('what the client says', () => {
  const entry = (message: string, extra: object = {}, level = logLevel.ERROR): LogEntry => ({
    namespace: 'Connection',
    level,
    label: 'ERROR',
    log: { timestamp: '', message, ...extra },
  });

  function listen() {
    const lines: string[] = [];
    const logger = createLogger({ process: 'test', level: 'info', stream: { write: (line) => void lines.push(line) } });
    let nowMs = 0;
    const tell = logInto(logger, () => nowMs);
    return { lines, tell, pass: (ms: number) => void (nowMs += ms) };
  }

  it('is logged without its text', () => {
    const { lines, tell } = listen();
    tell(
      entry('Connection error: connect ECONNREFUSED 10.0.0.7:9092', { broker: '10.0.0.7:9092', retryCount: 2, retryTime: 300, key: 'k1' }),
    );
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toMatchObject({ context: 'Connection', code: 'ECONNREFUSED', count: 2, delay_ms: 300 });
    expect(lines[0]).not.toMatch(/10\.0\.0\.7|9092|k1/);
  });

  it('is not repeated within a second, and the expected warning not at all', () => {
    const { lines, tell, pass } = listen();
    for (let repeat = 0; repeat < 5; repeat++) tell(entry('Connection error: ETIMEDOUT'));
    expect(lines).toHaveLength(1);
    tell(entry('Connection error: ECONNRESET'));
    expect(lines).toHaveLength(2);
    pass(1_000);
    tell(entry('Connection error: ETIMEDOUT'));
    expect(lines).toHaveLength(3);
    tell(entry('Limiting retries for the idempotent producer may invalidate EoS guarantees', {}, logLevel.WARN));
    expect(lines).toHaveLength(3);
  });
});
