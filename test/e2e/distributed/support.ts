import { createKafka } from '#adapters/broker/kafka/client.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import { createLogger } from '#adapters/observability/logger.js';
import { openPool } from '#adapters/postgres/database.js';
import { rebuildOperationView } from '#adapters/view/rebuild-operation-view.js';
import { digestOfView, type ViewDigest } from '#adapters/view/view-digest.js';
import type { OperationResource, RecordedEvent } from '#domain';
import { readLog } from '../../../proof/gather/postgres-facts.js';
import { readTopic } from '../../../proof/gather/topic-facts.js';
import type { Stack } from '../../../stack/stack.js';
import { paymentOrder, type Ledger } from '../../support/standalone-process.js';

/** How often something is looked at that tells nobody of itself; the test's own time-out bounds it. */
const LOOK_EVERY_MS = 200;

/** What a test does with a stack from outside, as its users would. */
export class StackUser {
  constructor(readonly stack: Stack) {}

  async request<T = OperationResource>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }> {
    const { api, key } = this.stack;
    const answer = await fetch(`${api[0]}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as T };
  }

  /** Plans it, and asks again for as long as the answer is that this was not certain: the same intent is the same operation. */
  async plan(labClass: string, object: string): Promise<OperationResource> {
    for (;;) {
      const { status, body } = await this.request('POST', '/v1/operations', paymentOrder(labClass, object)).catch(() => ({
        status: 503,
        body: null,
      }));
      if (status === 200 || status === 202) return body!;
      if (status !== 503) throw new Error(`The command API answered ${status}: ${JSON.stringify(body)}`);
      await pause();
    }
  }

  /** Plans `class` objects `name-0` ... with so many requests at once. @returns operation ids */
  async planMany(name: string, count: number, atOnce = 32): Promise<string[]> {
    const ids: string[] = [];
    let next = 0;
    const worker = async () => {
      for (let index = next++; index < count; index = next++) ids.push((await this.plan('a', `${name}-${index}`)).operation_id);
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    return ids;
  }

  async ledger(reference?: string): Promise<Ledger & { readonly references: number }> {
    const query = reference === undefined ? '' : `?reference=${reference}`;
    return (await (await fetch(`${this.stack.lab}/lab/ledger${query}`)).json()) as Ledger & { references: number };
  }

  async script(match: object, mode: string, more: object): Promise<void> {
    const answer = await fetch(`${this.stack.lab}/lab/script`, { method: 'PUT', body: JSON.stringify({ match, mode, ...more }) });
    if (!answer.ok) throw new Error(`The lab refused the script: ${await answer.text()}`);
  }

  services(name: string) {
    return this.stack.services.filter((service) => service.name === name);
  }

  /** The process that publishes the log now; the first of them that says so. */
  async relayLeader() {
    const leader = await this.until(async () => {
      for (const relay of this.services('relay').filter(({ isRunning }) => isRunning)) {
        const metrics = await metricsOf(relay.url).catch(() => '');
        if (valueOf(metrics, 'onefold_relay_leader') === 1) return relay;
      }
      return null;
    });
    return leader;
  }

  /** Asks until there is an answer. */
  async until<T>(ask: () => Promise<T | null>): Promise<T> {
    for (;;) {
      const answer = await ask();
      if (answer !== null) return answer;
      await pause();
    }
  }

  /** Until each operation has succeeded by its own stream. */
  async untilSucceeded(operationIds: readonly string[]): Promise<void> {
    for (const id of operationIds) {
      await this.until(async () => ((await this.request('GET', `/v1/operations/${id}`)).body.status === 'succeeded' ? true : null));
    }
  }

  log(): Promise<RecordedEvent[]> {
    return readLog(this.stack.database);
  }

  /** The view as the projectors have made it, once it has taken every event, and as it comes out when it is built anew. */
  async viewAndRebuilt(operations: number): Promise<{ view: ViewDigest; rebuilt: ViewDigest }> {
    const pool = openPool({ url: this.stack.database });
    const log = new PostgresEventLog(pool, { url: this.stack.database, hashing: nodeHashing });
    try {
      await this.until(async () => {
        const { rows } = await pool.query<{ done: string }>(
          "select count(*) as done from onefold.operation_view where status = 'succeeded'",
        );
        return Number(rows[0]!.done) >= operations ? true : null;
      });
      const view = await digestOfView(pool);
      await rebuildOperationView({ pool, log, onProgress: () => undefined });
      return { view, rebuilt: await digestOfView(pool) };
    } finally {
      await log.close();
      await pool.end();
    }
  }

  kafka() {
    const brokers = this.stack.kafka.bootstrap.split(',');
    return createKafka({ brokers, clientId: 'onefold-test', logger: createLogger({ process: 'test', level: 'silent' }) });
  }

  /** Everything that is on the topic now, in the order of its partitions; what is no event of ours is left out. */
  async topic(): Promise<RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    await readTopic(this.stack.kafka.bootstrap.split(','), ({ event }) => {
      if (event) events.push(event);
    });
    return events;
  }
}

export async function metricsOf(url: string): Promise<string> {
  return (await fetch(`${url}/metrics`)).text();
}

/** The value of a metric without labels; NaN where it is not there. */
export function valueOf(metrics: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
}

/** Events by operation, repetitions dropped by id, in the order in which they came. */
export function byOperation(events: readonly RecordedEvent[]): Map<string, RecordedEvent[]> {
  const seen = new Set<string>();
  const operations = new Map<string, RecordedEvent[]>();
  for (const event of events) {
    if (seen.has(event.id)) continue;
    seen.add(event.id);
    const own = operations.get(event.stream);
    if (own) own.push(event);
    else operations.set(event.stream, [event]);
  }
  return operations;
}

export function pause(ms = LOOK_EVERY_MS): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
