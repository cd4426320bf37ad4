import { describe, expect, it } from 'vitest';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { MemoryEventLog } from '#adapters/event-store/memory/memory-event-log.js';
import { DirectFeed, type CheckpointStore, type DirectFeedOptions } from '#adapters/feed/direct-feed.js';
import { UnreadableEvent, type EventLog, type NewEvent, type RecordedEvent } from '#domain';

/** Something a test waits for: told each time anything happens. */
class Signals {
  private waiting: (() => void)[] = [];

  tell(): void {
    for (const go of this.waiting.splice(0)) go();
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}

/** One of its events can't be read. */
class DamagedLog extends MemoryEventLog {
  constructor(private readonly damaged: bigint) {
    super(nodeHashing);
  }

  override async readAll(after: bigint, limit: number): Promise<readonly RecordedEvent[]> {
    const events = await super.readAll(after, limit);
    const at = events.findIndex(({ position }) => position === this.damaged);
    if (at === 0) throw new UnreadableEvent('operation-x', this.damaged);
    return at < 0 ? events : events.slice(0, at);
  }
}

class MemoryCheckpoints implements CheckpointStore {
  position = 0n;
  readonly saved: bigint[] = [];
  onSave: () => void = () => undefined;

  async load(): Promise<bigint> {
    return this.position;
  }

  async advance(_name: string, from: bigint, to: bigint): Promise<boolean> {
    this.onSave();
    if (from !== this.position) return false;
    this.position = to;
    this.saved.push(to);
    return true;
  }
}

function setUp(log: EventLog = new MemoryEventLog(nodeHashing), gatherMs = 0) {
  const signals = new Signals();
  const checkpoints = new MemoryCheckpoints();
  const batches: bigint[][] = [];
  const errors: Error[] = [];
  const consumer = {
    name: 'test',
    before: async (_events: readonly RecordedEvent[]): Promise<void> => undefined,
    async handle(events: readonly RecordedEvent[]) {
      await consumer.before(events);
      batches.push(events.map(({ position }) => position));
      signals.tell();
    },
  };
  const newFeed = (more: Partial<DirectFeedOptions> = {}) =>
    new DirectFeed({
      ...more,
      log,
      checkpoints,
      consumer,
      gatherMs,
      onError: (error) => {
        errors.push(error);
        signals.tell();
      },
      onProgress: () => signals.tell(),
    });
  return { log, signals, checkpoints, batches, errors, consumer, newFeed };
}

let streams = 0;
async function append(log: EventLog, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const stream = `operation-${++streams}`;
    const event: NewEvent = {
      id: nodeHashing.uuid5(stream),
      event: { type: 'OperationCancelled', data: { reason: 'test' } },
      metadata: { tenant: 't1', at: '2026-01-05T10:00:00.000Z', actor: 'test', correlation: 'test', causation: null, traceparent: null },
    };
    await log.append({ stream, expectedRevision: 'no_stream', previousChain: null, events: [event] });
  }
}

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, n) => BigInt(first + n));

describe('the direct feed', () => {
  it('hands over the whole log in order, in batches, and remembers where it is', async () => {
    const { log, checkpoints, batches, newFeed } = setUp();
    await append(log, 2_500);
    const feed = newFeed();
    expect([await feed.runOnce(), await feed.runOnce(), await feed.runOnce()]).toEqual([2_000, 500, 0]);
    expect(batches).toEqual([range(1, 2_000), range(2_001, 2_500)]);
    expect(checkpoints.saved).toEqual([2_000n, 2_500n]);
  });

  it('hands over again what a crash of the database took back together with the checkpoint', async () => {
    const { log, checkpoints, batches, newFeed } = setUp();
    await append(log, 3);
    const feed = newFeed();
    await feed.runOnce();
    checkpoints.position = 1n;
    await append(log, 1);
    await feed.runOnce();
    await feed.runOnce();
    expect(batches).toEqual([range(1, 3), range(4, 4), range(2, 4)]);
    expect(checkpoints.position).toBe(4n);
  });

  it('puts an event aside that can not be read, and goes on behind it', async () => {
    const log = new DamagedLog(3n);
    const { batches, checkpoints, newFeed } = setUp(log);
    await append(log, 5);
    const aside: bigint[] = [];
    const feed = newFeed({ onUnreadable: async ({ position }) => void aside.push(position) });
    while ((await feed.runOnce()) > 0);
    expect(batches).toEqual([range(1, 2), range(4, 5)]);
    expect(aside).toEqual([3n]);
    expect(checkpoints.saved).toEqual([2n, 3n, 5n]);
  });

  it('stays in front of an event that can be neither read nor put aside', async () => {
    const log = new DamagedLog(1n);
    const { batches, checkpoints, newFeed } = setUp(log);
    await append(log, 2);
    await expect(newFeed().runOnce()).rejects.toThrow(UnreadableEvent);
    const failing = async () => Promise.reject(new Error('the database is away'));
    await expect(newFeed({ onUnreadable: failing }).runOnce()).rejects.toThrow('away');
    expect([batches, checkpoints.saved]).toEqual([[], []]);
  });

  it('starts behind its checkpoint', async () => {
    const { log, checkpoints, batches, newFeed } = setUp();
    await append(log, 5);
    checkpoints.position = 3n;
    await newFeed().runOnce();
    expect(batches).toEqual([range(4, 5)]);
  });

  it('moves its checkpoint only after the consumer has finished', async () => {
    const { log, checkpoints, batches, newFeed } = setUp();
    await append(log, 3);
    const handledWhenSaved: number[] = [];
    checkpoints.onSave = () => handledWhenSaved.push(batches.length);
    await newFeed().runOnce();
    expect(handledWhenSaved).toEqual([1]);
  });

  it('hands over again what was handled in a crash before the checkpoint', async () => {
    const { log, checkpoints, batches, newFeed } = setUp();
    await append(log, 3);
    checkpoints.onSave = () => {
      throw new Error('the process died here');
    };
    const crashing = newFeed();
    await expect(crashing.runOnce()).rejects.toThrow('died');
    await expect(crashing.runOnce()).rejects.toThrow('died');
    checkpoints.onSave = () => undefined;
    await append(log, 1);
    await newFeed().runOnce();
    expect(batches).toEqual([range(1, 3), range(1, 3), range(1, 4)]);
    expect(checkpoints.position).toBe(4n);
  });

  it('skips nothing that its consumer has refused', async () => {
    const { log, checkpoints, batches, consumer, newFeed } = setUp();
    await append(log, 3);
    const feed = newFeed();
    consumer.before = async () => {
      throw new Error('not now');
    };
    await expect(feed.runOnce()).rejects.toThrow('not now');
    expect(checkpoints.saved).toEqual([]);
    consumer.before = async () => undefined;
    await feed.runOnce();
    expect(batches).toEqual([range(1, 3)]);
  });

  it('is woken by appends of its own process', async () => {
    const { log, signals, batches, newFeed } = setUp();
    const feed = newFeed();
    feed.start();
    for (let n = 1; n <= 5; n++) {
      await append(log, 1);
      await signals.until(() => batches.flat().length === n);
    }
    await feed.stop();
    expect(batches.flat()).toEqual(range(1, 5));
  });

  it('finds events that nobody in its process has appended', async () => {
    const silent = new MemoryEventLog(nodeHashing);
    const { signals, batches, newFeed } = setUp(
      new Proxy(silent, {
        get: (target, name) =>
          name === 'onAppended' ? () => () => undefined : (Reflect.get(target, name) as () => unknown).bind?.(target),
      }),
    );
    const feed = newFeed();
    feed.start();
    await append(silent, 2);
    await signals.until(() => batches.flat().length === 2);
    await append(silent, 1);
    await signals.until(() => batches.flat().length === 3);
    await feed.stop();
    expect(batches.flat()).toEqual(range(1, 3));
  });

  it('tries again after an error, later and later, and is not hurried by new events', async () => {
    const { log, signals, batches, errors, consumer, newFeed } = setUp();
    const feed = newFeed();
    consumer.before = async () => {
      throw new Error('not now');
    };
    await append(log, 1);
    const startedAt = performance.now();
    feed.start();
    await signals.until(() => errors.length === 1);
    // Each append would wake a waiting feed.
    while (errors.length < 3) {
      await append(log, 1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    // 200 ms after the first error and 400 ms after the second.
    expect(performance.now() - startedAt).toBeGreaterThan(590);
    consumer.before = async () => undefined;
    const { position } = (await log.readAll(0n, 1_000_000)).at(-1)!;
    await signals.until(() => BigInt(batches.flat().length) >= position);
    await feed.stop();
    expect(batches.flat()).toEqual(range(1, Number(position)));
  });

  it('finishes the batch under way when it is stopped, and begins no other', async () => {
    const { log, signals, checkpoints, batches, consumer, newFeed } = setUp();
    let release = (): void => undefined;
    let reached = false;
    consumer.before = () =>
      new Promise((resolve) => {
        reached = true;
        release = resolve;
        signals.tell();
      });
    await append(log, 2_001);
    const feed = newFeed();
    feed.start();
    await signals.until(() => reached);
    let isStopped = false;
    const stopped = feed.stop().then(() => (isStopped = true));
    await append(log, 1);
    expect(isStopped).toBe(false);
    release();
    await stopped;
    expect(batches).toEqual([range(1, 2_000)]);
    expect(checkpoints.position).toBe(2_000n);
  });

  it('can be stopped while it waits after an error, and before it was started', async () => {
    const { log, signals, errors, consumer, newFeed } = setUp();
    consumer.before = async () => {
      throw new Error('not now');
    };
    await append(log, 1);
    const feed = newFeed();
    feed.start();
    await signals.until(() => errors.length === 3);
    const stoppingAt = performance.now();
    await feed.stop();
    // The next try would come after 800 ms.
    expect(performance.now() - stoppingAt).toBeLessThan(500);
    await newFeed().stop();
  });

  it('lets events gather, so that what begins and ends together is one batch', async () => {
    const { log, signals, batches, newFeed } = setUp(undefined, 500);
    const feed = newFeed();
    await append(log, 1);
    feed.start();
    await signals.until(() => batches.length === 1);
    for (let n = 0; n < 3; n++) {
      await append(log, 1);
      // Long enough for a feed that does not wait to take each by itself; short against the time that it should wait.
      const nextAt = performance.now() + 10;
      while (performance.now() < nextAt) await new Promise((resolve) => setImmediate(resolve));
    }
    await signals.until(() => batches.flat().length === 4);
    await feed.stop();
    expect(batches).toEqual([range(1, 1), range(2, 4)]);
  });
});
