import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startStack, type ServiceEnd } from '../../../stack/stack.js';
import { noOwnCluster } from '../../support/kafka.js';
import { byOperation, pause, StackUser } from './support.js';

const OPERATIONS = 20_000;
/** Dispatchers join and leave this often. */
const MOVE_EVERY_MS = 2_000;
/** The operations come in as many parts, and each next one after a dispatcher has moved: no machine outruns the moves, and all kinds have had a turn. */
const PARTS = 4;

describe.skipIf(await noOwnCluster())('the whole stack on three brokers', () => {
  let user: StackUser;
  const ends: ServiceEnd[] = [];

  beforeAll(async () => {
    const instances = { 'command-api': 1, relay: 2, dispatcher: 3, projector: 1 };
    user = new StackUser(
      await startStack({ brokers: 3, instances, env: { 'provider-lab': { LAB_LEDGER: 'memory' } }, onEnd: (end) => ends.push(end) }),
    );
  }, 180_000);
  afterAll(() => user?.stack.stop(), 180_000);

  it(`carries ${OPERATIONS} operations out once each while brokers, the relay's leader and dispatchers come and go`, async () => {
    let done = false;
    const moves: Moves = { brokersKilled: 0, leadersKilled: 0, dispatchersMoved: 0 };
    const moving = keepMoving(user, moves, () => done);
    for (let part = 1; part <= PARTS; part++) {
      await user.planMany(`order-${part}`, OPERATIONS / PARTS);
      await Promise.race([moving, user.until(async () => (moves.dispatchersMoved >= part ? true : null))]);
    }
    await Promise.race([moving, user.until(async () => ((await user.ledger()).references >= OPERATIONS ? true : null))]);
    done = true;
    await moving;
    expect(moves.brokersKilled).toBeGreaterThan(0);
    expect(moves.leadersKilled).toBeGreaterThan(0);

    const { view, rebuilt } = await user.viewAndRebuilt(OPERATIONS);
    expect(view).toEqual(rebuilt);
    const { effects, references, max_effects_per_reference } = await user.ledger();
    expect({ effects, references, max_effects_per_reference }).toEqual({
      effects: OPERATIONS,
      references: OPERATIONS,
      max_effects_per_reference: 1,
    });

    const log = await user.log();
    await user.until(async () => (byOperationCount(await user.topic()) >= log.length ? true : null));
    const published = byOperation(await user.topic());
    const stored = byOperation(log);
    expect(published.size).toBe(stored.size);
    for (const [stream, events] of stored) {
      // In order, complete, and the very same: ids, revisions, chain hashes and data.
      expect(published.get(stream)).toEqual(events);
    }
    expect(ends).toEqual([]);
  }, 600_000);
});

function byOperationCount(events: Awaited<ReturnType<StackUser['topic']>>): number {
  return new Set(events.map(({ id }) => id)).size;
}

interface Moves {
  brokersKilled: number;
  leadersKilled: number;
  dispatchersMoved: number;
}

/** One dispatcher leaves and another comes every two seconds, by SIGTERM and SIGKILL in turn; now and then a broker or the leader is killed. */
async function keepMoving(user: StackUser, moves: Moves, isDone: () => boolean): Promise<void> {
  const { nodes } = user.stack.kafka;
  for (let round = 0; !isDone(); round++) {
    await pause(MOVE_EVERY_MS);
    const dispatchers = user.services('dispatcher');
    const one = dispatchers[round % dispatchers.length]!;
    await (round % 2 === 0 ? one.stop() : one.kill());
    if (round % 5 === 1) {
      // Its partitions change leaders, and change back when it returns.
      const node = nodes[moves.brokersKilled % nodes.length]!;
      await node.kill();
      moves.brokersKilled++;
      await node.start();
    }
    if (round % 5 === 3) {
      const leader = await user.relayLeader();
      await leader.kill();
      moves.leadersKilled++;
      await leader.start();
    }
    await one.start();
    moves.dispatchersMoved++;
  }
}
