import type { CrashPoint, ProviderClass } from './crash-points.js';
import { judge, type Verdict } from './judge.js';
import { NoAnswer, type Node } from './node.js';
import { DiedAtStart, reportsCrash, type ProductProcess } from './product-process.js';
import type { FaultServer } from './server.js';
import { read, submit, Workload } from './workload.js';
import { eventually, World } from './world.js';

/** `restart`: at once, while leases still run. `race`: two processes at the same moment, long after. */
export const CRASH_VARIANTS = ['restart', 'race'] as const;
export type CrashVariant = (typeof CRASH_VARIANTS)[number];

/** Past every lease and the five seconds that a taken row stays hidden. */
const LONG_AFTER_MS = 6_000;
/** Everything a point needs happens within a second or two of the submission. */
const CRASH_MAX_MS = 90_000;
/** How often a deed that depends on meeting an operation in passing is tried. */
const DEED_TRIES_MAX = 20;

export interface CrashCase {
  /** Each process dies at one of them, and the next one starts where it was; the last one is followed by the survivors. */
  readonly points: readonly CrashPoint[];
  readonly labClass: ProviderClass;
  readonly variant: CrashVariant;
  readonly occurrence: number;
}

/** A point that was not reached proves nothing, so the case has failed. */
export class PointNotReached extends Error {
  override readonly name = 'PointNotReached';
}

export async function runCrashCase(server: FaultServer, { points, labClass, variant, occurrence }: CrashCase): Promise<Verdict> {
  const world = await World.open(server);
  try {
    const workload = new Workload(world, labClass);
    for (const point of points) {
      await workload.prepare();
      await crash(world, workload, point, occurrence);
    }
    if (variant === 'race') await world.passTime(LONG_AFTER_MS);
    const [survivor, rival] = await Promise.all([world.start(), variant === 'race' ? world.start() : null]);
    // The agent heard nothing of some of them, and asks whoever is there.
    await Promise.all([workload.submitAll(survivor), ...(rival ? [workload.submitAll(rival)] : [])]);
    if (points.some(({ deed }) => deed === 'resolve')) await decideAll(world, survivor, workload);
    return await judge(world, survivor, workload);
  } finally {
    await world.close();
  }
}

async function crash(world: World, workload: Workload, point: CrashPoint, occurrence: number): Promise<void> {
  const doomed = await startDoomed(point, () => world.start({ crash: { point: point.name, occurrence } }));
  if (!doomed) return;
  const deeds = workload.submitNew(doomed).then(() => tryDeed(doomed, workload, point));
  await untilDeath(doomed, point);
  await deeds;
}

/** Null where it reached the point while it was starting: a process that looks for work does not wait to be asked. */
export async function startDoomed<P extends ProductProcess>({ name }: CrashPoint, start: () => Promise<P>): Promise<P | null> {
  try {
    return await start();
  } catch (error) {
    if (error instanceof DiedAtStart && reportsCrash(error.output, name)) return null;
    throw error;
  }
}

/** @throws PointNotReached */
export async function untilDeath(doomed: ProductProcess, { name }: CrashPoint): Promise<void> {
  const giveUp = timeout(CRASH_MAX_MS);
  const exit = await Promise.race([doomed.exited, giveUp.over]);
  giveUp.end();
  if (exit !== null && doomed.diedAt(name)) return;
  const how = exit === null ? 'is still running' : `ended with ${exit.code ?? exit.signal}`;
  throw new PointNotReached(`${name} was not reached: the process ${how}.\n${doomed.log()}`);
}

/** What a person or an agent does besides; a connection that breaks is what it is all about. */
async function tryDeed(node: Node, workload: Workload, { deed }: CrashPoint): Promise<void> {
  try {
    for (let tries = 0; tries < DEED_TRIES_MAX && !node.isOver; tries++) if (await doDeed(node, workload, deed, tries)) return;
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
  }
}

async function doDeed(node: Node, workload: Workload, deed: CrashPoint['deed'], tries: number): Promise<boolean> {
  switch (deed) {
    case 'submit':
    case 'outlive_the_lease':
      return true;
    case 'repeat':
      return submit(node, workload.named('plain'));
    case 'cancel':
      return cancelOne(node, workload, tries);
    case 'reconcile':
      return (await waitAndAct(node, workload, 'gone', 'reconcile')) === 202;
    case 'resolve':
      return (await waitAndAct(node, workload, 'lost', 'resolve')) === 200;
  }
}

/** Behind two calls that hang, an operation is planned and waits: there is time to stop it. */
async function cancelOne(node: Node, workload: Workload, tries: number): Promise<boolean> {
  const blockers = await Promise.all([1, 2].map((n) => workload.add(`blocker-${tries}-${n}`, 'HANG')));
  const victim = await workload.add(`victim-${tries}`, 'OK');
  await Promise.all(blockers.map((intent) => submit(node, intent)));
  if (!(await submit(node, victim))) return false;
  const { status } = await node.request('POST', `/v1/operations/${victim.operationId}/cancel`, { body: { reason: 'not needed' } });
  victim.cancelled = status === 200;
  return victim.cancelled;
}

async function waitAndAct(node: Node, workload: Workload, object: string, act: 'reconcile' | 'resolve'): Promise<number> {
  const { operationId } = workload.named(object);
  if (operationId === null) throw new NoAnswer(`${object} was not acknowledged.`);
  const operation = await eventually(`The doubt about ${object}`, async () => {
    if (node.isOver) return 'over';
    const found = await read(node, operationId);
    const ready = act === 'reconcile' ? found?.status === 'unknown' : found?.review?.open === true;
    return ready ? found : null;
  });
  if (operation === 'over') throw new NoAnswer('The process is over.');
  return act === 'reconcile'
    ? (await node.request('POST', `/v1/operations/${operationId}/reconcile`, { body: { reason: 'the customer calls' } })).status
    : resolve(node, operationId, operation.revision, true);
}

async function resolve(node: Node, operationId: string, revision: number, happened: boolean): Promise<number> {
  const decision = happened
    ? { decision: 'happened', evidence: 'line 17 of the bank statement' }
    : { decision: 'did_not_happen', evidence: 'no such line in the statement' };
  const { status } = await node.request('POST', `/v1/operations/${operationId}/resolve`, {
    body: { reason: 'seen in the bank statement', ...decision },
    headers: { 'if-match': `"${revision}"` },
  });
  return status;
}

/** Decides every review by what the provider has, as the person would who started to. */
async function decideAll(world: World, node: Node, workload: Workload): Promise<void> {
  for (const { object, operationId } of workload.intents) {
    if (operationId === null) continue;
    const operation = await eventually(`The outcome of ${object}`, async () => {
      const found = await read(node, operationId);
      return found && (found.status === 'succeeded' || found.status === 'failed_final' || found.review?.open) ? found : null;
    });
    if (operation.status === 'unknown') await resolve(node, operationId, operation.revision, (await world.ledger(object)).effects > 0);
  }
}

function timeout(ms: number): { over: Promise<null>; end: () => void } {
  let end!: () => void;
  const over = new Promise<null>((done) => {
    const timer = setTimeout(() => done(null), ms);
    end = () => clearTimeout(timer);
  });
  return { over, end };
}
