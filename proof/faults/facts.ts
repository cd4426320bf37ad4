import type { AcknowledgedCommand, CapturedText, Facts, LedgerCall } from '../checker/facts.js';
import { ledgerCallsOf } from '../checker/ledger-facts.js';
import { readLog, readView } from '../gather/postgres-facts.js';
import { topicFacts } from '../gather/topic-facts.js';
import { ACCOUNT_CANARY, type Workload } from './workload.js';
import type { World } from './world.js';

/** On one machine the lab's clock and the database's are the same; a request takes milliseconds to arrive. */
const SKEW_MS = 1_000;
const TENANT = 'dev';

/**
 * Everything that the checker can be told of a case, read by this process, which has taken no part, from the database, the lab and the topic.
 * The product may be running or not.
 */
export async function gatherFacts(world: World, workload: Workload, quiescent: boolean): Promise<Facts> {
  const ledger: LedgerCall[] = [];
  for (const { object } of workload.intents) ledger.push(...ledgerCallsOf(await world.ledger(object)));
  const captured: CapturedText[] = world.logs().map((text, index) => ({ source: `the log of process ${index + 1}`, text }));
  const canaries = [ACCOUNT_CANARY];
  const { topic } = world;
  return {
    ledger,
    log: await readLog(world.database.url),
    view: await readView(world.database.url),
    ...(topic && { topic: await topicFacts(topic.brokers, canaries, topic.name) }),
    acknowledged: acknowledgedIn(workload),
    captured,
    canaries,
    quiescent,
    skewMs: SKEW_MS + world.largestClockStepMs,
  };
}

function acknowledgedIn({ intents }: Workload): AcknowledgedCommand[] {
  return intents.flatMap(({ object, operationId, otherIds, cancelled }) => {
    if (operationId === null) return [];
    const plan = (id: string): AcknowledgedCommand => ({
      ...{ operationId: id, tenant: TENANT, command: 'plan', intent: object, businessReference: object },
    });
    const cancel: AcknowledgedCommand = { operationId, tenant: TENANT, command: 'cancel' };
    return [operationId, ...otherIds].map(plan).concat(cancelled ? [cancel] : []);
  });
}
