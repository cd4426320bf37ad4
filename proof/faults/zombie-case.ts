import type { CrashPoint, ProviderClass } from './crash-points.js';
import { PointNotReached } from './crash-case.js';
import { judge, type Verdict } from './judge.js';
import type { FaultServer } from './server.js';
import { isSettled, read, submit, Workload } from './workload.js';
import { eventually, World } from './world.js';

/** Longer than the lease and the time for which a taken row is hidden. */
const PAST_THE_LEASE_MS = 6_000;

/**
 * A process stands still while its call is under way, another one takes over when the lease is past, and the first one wakes up and
 * records what it knows. It must change nothing twice.
 *
 * @param point where the one that wakes up dies; null: it lives on
 */
export async function runZombieCase(
  server: FaultServer,
  labClass: ProviderClass,
  point: CrashPoint | null,
  mode: string,
): Promise<Verdict> {
  const world = await World.open(server);
  try {
    const workload = new Workload(world, labClass);
    const intent = await workload.add('frozen', mode);
    const waiting = await workload.add('waiting', 'OK');
    const zombie = await world.start(point ? { crash: { point: point.name, occurrence: 1 } } : {});
    await submit(zombie, intent);
    await eventually('The call at the provider', async () => ((await world.ledger(intent.object)).calls > 0 ? true : null));
    zombie.signal('SIGSTOP');
    await world.passTime(PAST_THE_LEASE_MS);
    const heir = await world.start();
    await submit(heir, waiting);
    await eventually('The outcome from the process that took over', async () => {
      const operation = await read(heir, intent.operationId!);
      return operation && isSettled(operation) ? operation : null;
    });
    zombie.signal('SIGCONT');
    if (point) {
      await eventually(`The end of the process at ${point.name}`, () => (zombie.isOver ? true : null), 20_000).catch(() => {
        throw new PointNotReached(`${point.name} was not reached: the process that was frozen is still running.\n${zombie.log()}`);
      });
      if (!zombie.diedAt(point.name)) throw new PointNotReached(`${point.name} was not reached.\n${zombie.log()}`);
    } else {
      // Its drain ends when the call that it had under way is over and recorded.
      const { code } = await zombie.stop();
      if (code !== 0) throw new Error(`The process that was frozen ended with ${code}:\n${zombie.log()}`);
    }
    return await judge(world, heir, workload);
  } finally {
    await world.close();
  }
}
