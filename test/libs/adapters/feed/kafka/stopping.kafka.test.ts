import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Consumer } from 'kafkajs';
import { freshName, noKafka } from '../../../../support/kafka.js';
import { freshOperation, KafkaFeedWorld, until, type TestFeed } from './kafka-feed-world.js';

/** A consumer that was disconnected while it joined came back after 10 s (kafkajs 2.2.4): this is watched, not guessed. */
const WATCH_MS = 13_000;
const PARTITIONS = 4;

// They mostly watch, and all can do so at the same time.
vi.setConfig({ maxConcurrency: 12 });

describe.skipIf(noKafka())('A Kafka feed that is stopped', () => {
  let world: KafkaFeedWorld;

  beforeAll(async () => {
    world = await KafkaFeedWorld.open(PARTITIONS);
  });
  afterAll(() => world.close());

  /** Everything that the client does is told to `onEvent`, as `joining` etc.; the first time it says so, the feed is stopped. */
  function stopAt(step: string, nth = 1, name = freshName('consumer')) {
    let stopping: Promise<void> | null = null;
    const seen: string[] = [];
    const act = (what: string) => {
      seen.push(what);
      if (what === step && seen.filter((each) => each === step).length === nth) stopping = under.feed.stop();
    };
    const onConsumer = (consumer: Consumer) => {
      const { CONNECT, GROUP_JOIN, FETCH_START, FETCH, REBALANCING } = consumer.events;
      for (const event of [CONNECT, GROUP_JOIN, FETCH_START, FETCH, REBALANCING]) {
        consumer.on(event as typeof CONNECT, () => act(event.slice('consumer.'.length)));
      }
    };
    const under: TestFeed = world.feed({ name, onConsumer });
    const stopped = async () => {
      await until(() => stopping !== null);
      await stopping;
    };
    return { under, name, seen, stopped };
  }

  /** Another member gets every partition at once and keeps it; the stopped one does nothing more. */
  async function expectGone(name: string, seen: readonly string[], handled: () => number): Promise<void> {
    expect(await world.members(name)).toEqual([]);
    const before = [...seen];
    const handledBefore = handled();
    const witness = world.feed({ name });
    witness.feed.start();
    await until(() => witness.joins.length === 1);
    expect(witness.joins).toEqual([PARTITIONS]);
    await world.publish(...Array.from({ length: 8 }, () => world.event(freshOperation(), 0)));
    await new Promise((resolve) => setTimeout(resolve, WATCH_MS));
    expect(witness.joins).toEqual([PARTITIONS]);
    expect(await world.members(name)).toHaveLength(1);
    expect(seen).toEqual(before);
    expect(handled()).toBe(handledBefore);
    await witness.feed.stop();
  }

  describe.concurrent('leaves its group and does not come back', () => {
    it.for([
      ['while it connects', 'connect', 1],
      ['as it begins to join', 'connect', 2],
      ['as it is joined and has not fetched', 'group_join', 1],
      ['as it begins to fetch', 'fetch_start', 1],
      ['after its first fetch', 'fetch', 1],
      ['in the middle of its reading', 'fetch', 4],
    ] as const)('%s', async ([, step, nth], { expect }) => {
      const { under, name, seen, stopped } = stopAt(step, nth);
      under.feed.start();
      await stopped();
      expect(seen.filter((each) => each === step)).toHaveLength(nth);
      await expectGone(name, seen, () => under.consumer.handled.length);
    });

    it.for([
      ['while the group rebalances', 'rebalancing', 1],
      ['as it has rejoined', 'group_join', 2],
      ['as it fetches after a rejoin', 'fetch_start', 'after rejoin'],
    ] as const)('%s', async ([, step, nth]) => {
      // Under load it fetches a few times before the other comes; what counts is the first after the rejoin.
      const { under, name, seen, stopped } = stopAt(nth === 'after rejoin' ? 'none' : step, nth === 'after rejoin' ? 1 : nth);
      under.feed.start();
      await until(() => seen.includes('fetch'));
      const other = world.feed({ name });
      other.feed.start();
      if (nth === 'after rejoin') {
        await until(() => seen.lastIndexOf('fetch_start') > seen.lastIndexOf('group_join') && under.joins.length === 2);
        await under.feed.stop();
      } else await stopped();
      await until(() => other.joins.at(-1) === PARTITIONS);
      await until(async () => (await world.members(name)).length === 1);
      await other.feed.stop();
      await expectGone(name, seen, () => under.consumer.handled.length);
    });

    it('before it has begun anything', async () => {
      const { under, name, seen } = stopAt('none');
      under.feed.start();
      await under.feed.stop();
      await expectGone(name, seen, () => under.consumer.handled.length);
    });

    it('while its join waits for a member that is at work', async () => {
      const name = freshName('consumer');
      const busy = world.feed({ name });
      const release = busy.consumer.hold();
      await world.publish(world.event(freshOperation(), 0));
      busy.feed.start();
      await until(() => busy.consumer.calls > 0);
      const { under, seen } = stopAt('none', 1, name);
      under.feed.start();
      await until(async () => (await world.groupState(name)) === 'PreparingRebalance');
      const stopping = under.feed.stop();
      release();
      await stopping;
      await until(() => busy.joins.length > 1 && busy.joins.at(-1) === PARTITIONS);
      await busy.feed.stop();
      await expectGone(name, seen, () => under.consumer.handled.length);
    });

    it('while its consumer is at work, and what that finishes is committed', async () => {
      const name = freshName('consumer');
      const { under, seen } = stopAt('none', 1, name);
      const release = under.consumer.hold();
      await world.publish(world.event(freshOperation(), 0));
      under.feed.start();
      await until(() => under.consumer.calls > 0);
      const stopping = under.feed.stop();
      release();
      await stopping;
      const handled = under.consumer.handled.length;
      const [answer] = await world.admin.fetchOffsets({ groupId: `onefold-${name}`, topics: [world.topic] });
      const committed = answer!.partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0);
      expect(committed).toBe(handled);
      await expectGone(name, seen, () => under.consumer.handled.length);
    });
  });
});
