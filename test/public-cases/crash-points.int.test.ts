import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { EventLog } from '#domain';
import type { DispatcherNode, NodeOptions } from '../support/dispatcher-node.js';
import { behave } from '../support/dispatcher-provider.js';
import { publicCase } from './registry.js';
import { CaseWorld, SECOND } from './support/case-world.js';
import { DyingLog, Killed } from './support/dying-log.js';

let world: CaseWorld;
beforeAll(async () => {
  world = await CaseWorld.open();
});
afterEach(() => world.reset());
afterAll(() => world.close());

/** Brings a process to the point of its death. */
interface CrashPoint {
  readonly options?: NodeOptions;
  readonly run: (node: DispatcherNode) => Promise<void>;
  /** Attempts that reach the provider in the end. */
  readonly calls: number;
}

const dead = (node: DispatcherNode) =>
  world.dispatchers.until('the process is dead', () => node.faults.some(({ error }) => error instanceof Killed));
const workUntilDead = async (node: DispatcherNode) => {
  await node.work();
  await dead(node);
};
const dyingLog = (when: 'before' | 'after', type: 'AttemptStarted' | 'OperationSucceeded'): NodeOptions => ({
  wrapLog: (log) => new DyingLog(log, when, type),
});

const POINTS: Readonly<Record<string, () => CrashPoint>> = {
  'after the claim': () => ({ options: dyingLog('after', 'AttemptStarted'), run: workUntilDead, calls: 1 }),
  'after the send': () => {
    const pause = world.dispatchers.pause();
    world.dispatchers.providers.get('payments')!.next((each, call) => (each.cause(call), behave.paused(pause, behave.lost)(each, call)));
    return { run: async (node) => (await node.work(), await pause.reached), calls: 1 };
  },
  'after the response': () => ({ options: dyingLog('before', 'OperationSucceeded'), run: workUntilDead, calls: 1 }),
  'after the outcome was appended': () => ({ options: dyingLog('after', 'OperationSucceeded'), run: workUntilDead, calls: 1 }),
  'after the checkpoint moved, before the work was taken': () => ({ run: async ({ feed }) => void (await feed.runOnce()), calls: 1 }),
  'after the due work was written, before the checkpoint moved': () => ({
    options: {
      wrapDueWork: (dueWork) => ({
        take: (room, hideMs) => dueWork.take(room, hideMs),
        takeOthers: (providers, rows, hideMs) => dueWork.takeOthers(providers, rows, hideMs),
        countDue: () => dueWork.countDue(),
        set: async (changes) => {
          await dueWork.set(changes);
          throw new Killed('The process was killed.');
        },
      }),
    },
    run: async ({ feed }) => void (await expect(feed.runOnce()).rejects.toThrow(Killed)),
    calls: 1,
  }),
};

/** The other process, with each of its appends late by so much. */
const slowedBy = (ms: number): NodeOptions => ({
  wrapLog: (log) =>
    Object.assign(Object.create(log) as EventLog, {
      append: async (...args: Parameters<EventLog['append']>) => (await delay(ms), log.append(...args)),
    }),
});

describe(publicCase('25'), () => {
  describe.each(Object.keys(POINTS))('SIGKILL %s', (point) => {
    it.each([0, 80])('the other process slowed by %i ms: one effect, and the operation says so', async (slowMs) => {
      const { dispatchers } = world;
      const provider = world.provider('c');
      const { options, run, calls } = POINTS[point]!();
      const dying = await dispatchers.node(options);
      const id = await dispatchers.plan(dying, 'payments');
      await run(dying);
      await dying.kill();

      (await dispatchers.node(slowedBy(slowMs))).start();
      await dispatchers.moveClock(11 * SECOND);
      await dispatchers.until('done, or asked about once', async () => {
        const types = await dispatchers.types(id);
        return types.includes('OperationSucceeded') || types.includes('OutcomeChecked');
      });
      // The lease and the landing, waited out by a process that knows the doubt.
      await dispatchers.moveClock(40 * SECOND);
      await dispatchers.untilStatus(id, 'succeeded');
      expect(await dispatchers.state(id)).toMatchObject({ providerOperationId: `effect-${id}-1`, review: null });
      expect(provider.ledger(id)).toMatchObject({ calls, effects: 1 });
    });
  });
});
