import { readFile } from 'node:fs/promises';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import type { Pool } from '#adapters/postgres/database.js';
import { rebuildOperationView } from '#adapters/view/rebuild-operation-view.js';
import type { Stack } from '../../stack/stack.js';
import type { RecordedEvent } from '#domain';
import type { AcknowledgedCommand, CapturedText, Facts, ReplayFact, SubscriberFact, TopicRecord } from '../checker/facts.js';
import { readLog, readView } from '../gather/postgres-facts.js';
import { topicFacts } from '../gather/topic-facts.js';
import { ACCOUNT_CANARY, type Order } from './agents.js';
import type { LabClient } from './lab-client.js';
import { SLOW_MS } from './link.js';
import { SETTLE_MS_MAX } from './settle.js';
import { FREEZE_MS_MAX, LAB_FREEZE_MS_MAX } from './times.js';

/** Lab and database share a clock; a call may be as late as a frozen dispatcher, a slow way and a frozen lab make it. */
const SKEW_MS = 1_000 + FREEZE_MS_MAX + SLOW_MS + LAB_FREEZE_MS_MAX;

export interface Witnesses {
  readonly stack: Stack;
  readonly pool: Pool;
  readonly lab: LabClient;
  readonly tenant: string;
  readonly orders: readonly Order[];
  readonly decided: readonly AcknowledgedCommand[];
  readonly problems: readonly string[];
  readonly settledAfterMs: number | null;
}

/** Everything that the checker can be told of a run, from outside. The view is built anew on the way, which must cause no call. */
export async function gatherFacts({ stack, pool, lab, tenant, orders, decided, problems, settledAfterMs }: Witnesses): Promise<Facts> {
  const canaries = [ACCOUNT_CANARY, ...secretsOf(stack)];
  const captured = [...(await capturedFrom(stack)), ...problems.map((text) => ({ source: 'a problem body', text }))];
  const view = await readView(stack.database);
  const replay = await rebuild(stack, pool, lab);
  const log = await readLog(stack.database);
  const topic = await topicFacts(stack.kafka.bootstrap.split(','), canaries);
  return {
    ledger: await lab.ledger(orders.map(({ reference }) => reference)),
    log,
    view,
    rebuiltView: await readView(stack.database),
    topic,
    subscribers: [await relayAmong(pool, log, topic)],
    acknowledged: [...acknowledgedIn(orders, tenant), ...decided],
    captured,
    canaries,
    replay,
    progress: { settledAfterMs, boundMs: SETTLE_MS_MAX, watchdogAlarms: 0 },
    quiescent: settledAfterMs !== null,
    skewMs: SKEW_MS,
  };
}

function secretsOf({ key, database, secrets }: Stack): string[] {
  return [key, new URL(database).password, ...secrets];
}

async function capturedFrom({ services }: Stack): Promise<CapturedText[]> {
  const texts = services.map(async ({ name, instance, logFile, url }) => {
    const source = `${name}-${instance}`;
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return [
      { source: `the log of ${source}`, text: await readFile(logFile, 'utf8') },
      { source: `the metrics of ${source}`, text: metrics },
    ];
  });
  return (await Promise.all(texts)).flat();
}

async function rebuild({ database }: Stack, pool: Pool, lab: LabClient): Promise<ReplayFact> {
  const before = await lab.totals();
  const log = new PostgresEventLog(pool, { url: database, hashing: nodeHashing });
  try {
    await rebuildOperationView({ pool, log });
  } finally {
    await log.close();
  }
  const after = await lab.totals();
  return { calls: after.calls - before.calls, lookUps: after.lookups - before.lookups, webhooks: 0 };
}

/** The relay reads the log for all others: what it has moved past has to be on the topic. */
async function relayAmong(pool: Pool, log: readonly RecordedEvent[], topic: readonly TopicRecord[]): Promise<SubscriberFact> {
  const { rows } = await pool.query<{ position: string }>("select position from onefold.checkpoints where name = 'relay'");
  const published = new Set(topic.map(({ eventId }) => eventId));
  const delivered = new Set(log.flatMap(({ id, position }) => (published.has(id) ? [position] : [])));
  return { name: 'the relay', cursor: BigInt(rows[0]?.position ?? 0), delivered };
}

function acknowledgedIn(orders: readonly Order[], tenant: string): AcknowledgedCommand[] {
  return orders.flatMap(({ reference, operationId, otherIds, cancelled }) => {
    if (operationId === null) return [];
    const plan = (id: string): AcknowledgedCommand => ({
      ...{ operationId: id, tenant, command: 'plan', intent: reference, businessReference: reference },
    });
    const cancel: AcknowledgedCommand = { operationId, tenant, command: 'cancel' };
    return [operationId, ...otherIds].map(plan).concat(cancelled ? [cancel] : []);
  });
}
