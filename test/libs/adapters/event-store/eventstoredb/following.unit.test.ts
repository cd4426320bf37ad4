import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LogUnavailable, UnreadableEvent, type EventLog, type RecordedEvent } from '#domain';
import { chainIsIntact } from '#adapters/event-store/encoding.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import type { EventStoreDbEventLog } from '#adapters/event-store/eventstoredb/eventstoredb-event-log.js';
import { freshStream, numbered, readToEnd, reasonOf, seedStream } from '../../../../support/event-log-samples.js';
import { chainOfAppends } from '../../../../support/event-log-load.js';
import { Tail } from '../../../../support/event-log-tail.js';
import { EventStoreDbDouble } from '../../../../support/eventstoredb-double/eventstoredb-double.js';
import { openLogOf } from './fixture.js';

/** A real protocol over real sockets: longer than what needs nothing but the processor. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let double: EventStoreDbDouble;
let log: EventStoreDbEventLog;
beforeEach(async () => {
  double = await EventStoreDbDouble.start();
  double.writeForeign('$stats-127.0.0.1:2113', 2);
  log = openLogOf(double);
});
afterEach(async () => {
  await log.close();
  await double.close();
});

/** Ids of all events of ours, in the order of the double's own log. */
const committed = () => double.store.records.filter(({ stream }) => stream.startsWith('operation-')).map(({ id }) => id);
const idsOf = (events: readonly RecordedEvent[]) => events.map(({ id }) => id);

/** As a feed reads: told that the log is unavailable it asks again from the same place, a bounded number of times. */
function patient(given: EventLog): EventLog {
  const readAll = async (after: bigint, limit: number) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await given.readAll(after, limit);
      } catch (error) {
        if (!(error instanceof LogUnavailable) || attempt === 20) throw error;
      }
    }
  };
  return Object.assign(Object.create(given) as EventLog, { readAll });
}

/** Reads on from `after` until `count` events were seen; a poll that finds nothing is repeated. */
async function readOn(after: bigint, count: number, limit = 7): Promise<RecordedEvent[]> {
  const seen: RecordedEvent[] = [];
  while (seen.length < count) seen.push(...(await log.readAll(seen.at(-1)?.position ?? after, limit)));
  return seen;
}

/** Polls as an idle reader does until its subscription stands, so that what comes next is pushed to it. */
async function follow(after: bigint): Promise<void> {
  while (double.openSubscriptions === 0) await log.readAll(after, 10);
}

describe('a reader of the whole log', () => {
  it('gets the events of operation streams only, in the order of the log, whatever stands between', async () => {
    const expected: string[] = [];
    for (const reason of numbered(30)) {
      double.writeForeign('orders-17', 3);
      expected.push(...idsOf(await seedStream(log, reason)));
      double.writeForeign('$$operation-op_1', 1);
    }
    for (const limit of [1, 4, 1_000]) expect(idsOf(await readToEnd(log, 0n, limit))).toEqual(expected);
  });

  it('passes thousands of foreign events and is told of the end only where it is', async () => {
    double.writeForeign('orders-1', 2_500);
    const [first] = await seedStream(log, 'a');
    double.writeForeign('orders-1', 2_500);
    expect(await log.readAll(0n, 10)).toEqual([first]);
    expect(await log.readAll(first!.position, 10)).toEqual([]);
    expect(await log.head()).toBe(first!.position);
    const [second] = await seedStream(log, 'b');
    expect(await log.readAll(first!.position, 10)).toEqual([second]);
    expect(await log.head()).toBe(second!.position);
  });

  it('an idle poll does not go over foreign events again', async () => {
    const [first] = await seedStream(log, 'a');
    double.writeForeign('orders-1', 2_500);
    await log.readAll(first!.position, 10);
    const before = double.calls.get('read_all')!;
    await log.readAll(first!.position, 10);
    expect(double.calls.get('read_all')! - before).toBe(1);
  });

  it('is pushed what comes, and need not read for it', async () => {
    const [first] = await seedStream(log, 'a');
    await follow(first!.position);
    const other = openLogOf(double);
    const expected = idsOf((await Promise.all(numbered(40).map((reason) => seedStream(other, reason)))).flat()).sort();
    const reads = double.calls.get('read_all')!;
    const seen = await readOn(first!.position, 40, 5);
    expect(idsOf(seen).sort()).toEqual(expected);
    // At most the polls that came before the first push.
    expect(double.calls.get('read_all')! - reads).toBeLessThan(8);
    await other.close();
  });

  it('that is behind when its subscription begins gets what lies between before what is new', async () => {
    for (const reason of numbered(8)) await seedStream(log, reason);
    const seen = [...(await log.readAll(0n, 1))];
    while (double.openSubscriptions === 0) seen.push(...(await log.readAll(seen.at(-1)!.position, 1)));
    expect(seen.length).toBeLessThan(8);
    await seedStream(log, 'new');
    await log.head(); // Answered behind whatever was pushed on the same connection.
    seen.push(...(await readToEnd(log, seen.at(-1)!.position, 1)));
    expect(idsOf(seen)).toEqual(committed());
  });

  it('may ask again from where it stood, and gets the same', async () => {
    const [first] = await seedStream(log, 'a');
    await follow(first!.position);
    for (const reason of numbered(5)) await seedStream(log, reason);
    const once = await readOn(first!.position, 5);
    for (const index of [3, 0, 1, 4]) {
      expect(await log.readAll(once[index]!.position, 10)).toEqual(once.slice(index + 1));
    }
    expect(await log.readAll(first!.position, 10)).toEqual(once);
  });

  it('stops before an event that can not be read, and can go on behind it', async () => {
    const [first] = await seedStream(log, 'a');
    const [damaged] = await seedStream(log, 'b');
    const [third] = await seedStream(log, 'c');
    Object.assign(
      double.store.records.find(({ id }) => id === damaged!.id)!,
      { data: Buffer.from('{"attempt":') },
    );
    expect(await log.readAll(0n, 10)).toEqual([first]);
    await expect(log.readAll(first!.position, 10)).rejects.toThrow(UnreadableEvent);
    await expect(log.readAll(first!.position, 10)).rejects.toMatchObject({ position: damaged!.position, stream: damaged!.stream });
    expect(await log.readAll(damaged!.position, 10)).toEqual([third]);
  });
});

describe('a subscription that breaks', () => {
  it.each(['error', 'end'] as const)('with %s: no event is skipped, doubled or moved', async (how) => {
    const tail = new Tail(patient(log), 5);
    const other = openLogOf(double);
    for (const round of numbered(6)) {
      await Promise.all(numbered(10, round).map((reason) => seedStream(other, reason)));
      double.endSubscriptions(how);
    }
    await tail.stop();
    expect(idsOf(tail.seen)).toEqual(committed());
    await other.close();
  });

  it('with events already pushed and not yet asked for: they come, and those behind them', async () => {
    const [first] = await seedStream(log, 'a');
    await follow(first!.position);
    for (const reason of numbered(20)) await seedStream(log, reason);
    const some = await readOn(first!.position, 3, 3);
    expect(double.endSubscriptions('error')).toBeGreaterThan(0);
    for (const reason of numbered(3)) await seedStream(log, reason);
    const rest = await readToEnd(log, some.at(-1)!.position, 4);
    expect(idsOf([first!, ...some, ...rest])).toEqual(committed());
  });

  it('while the server is away reads say so, and afterwards go on from the same place', async () => {
    const [first] = await seedStream(log, 'a');
    await follow(first!.position);
    void double.faults.next('read_all', 'unavailable', Infinity);
    double.endSubscriptions('error');
    await expect(log.readAll(first!.position, 10)).rejects.toThrow(LogUnavailable);
    double.faults.clear();
    const [second] = await seedStream(log, 'b');
    expect(idsOf(await readToEnd(log, first!.position, 10))).toEqual([second!.id]);
  });
});

describe('checkpoints of a subscription', () => {
  it('never take a reader over events that it has not been given', async () => {
    // A checkpoint after each event: the newest one lies far ahead of what the reader has taken.
    const seen: RecordedEvent[] = [];
    const [first] = await seedStream(log, 'a');
    await follow(first!.position);
    for (const reason of numbered(12)) {
      await seedStream(log, reason);
      double.writeForeign('orders-1', 40);
    }
    for (let position = first!.position; seen.length < 12; position = seen.at(-1)!.position) {
      seen.push(...(await log.readAll(position, 1)));
      if (seen.length % 4 === 0) double.endSubscriptions('error');
    }
    expect(idsOf([first!, ...seen])).toEqual(committed());
    expect(await log.readAll(seen.at(-1)!.position, 10)).toEqual([]);
  });
});

describe('2,000 events with foreign ones between', () => {
  it('two readers at different places see each once, in order, while writers append and connections break', async () => {
    const writers = numbered(3).map(() => openLogOf(double));
    const early = new Tail(patient(log), 50);
    let appended = 0;
    const onAcknowledged = () => {
      appended++;
      double.writeForeign(`orders-${appended % 7}`, appended % 4);
      if (appended % 400 === 0) double.endSubscriptions(appended % 800 === 0 ? 'error' : 'end');
      if (appended === 900) double.cutConnections();
    };
    const load = Promise.all(numbered(40).map((_, index) => chainOfAppends(writers[index % 3]!, 50, onAcknowledged)));
    while (appended < 500) await new Promise((resolve) => setImmediate(resolve));
    const late = new Tail(patient(log), 313);
    const chains = await load;
    await Promise.all([early.stop(), late.stop()]);
    const expected = committed();
    expect(expected).toHaveLength(2_000);
    expect(idsOf(early.seen)).toEqual(expected);
    expect(idsOf(late.seen)).toEqual(expected);
    const streams = await log.readStreams(chains.map(({ stream }) => stream));
    for (const { stream, ids } of chains) {
      expect(idsOf(streams.get(stream)!)).toEqual(ids);
      expect(chainIsIntact(nodeHashing, streams.get(stream)!)).toBe(true);
    }
    await Promise.all(writers.map((writer) => writer.close()));
  }, 120_000);
});

it('head is 0 on a log without events of ours, and finds the last one behind many others', async () => {
  double.writeForeign(freshStream().replace('operation', 'order'), 1_500);
  expect(await log.head()).toBe(0n);
  expect(await log.readAll(0n, 5)).toEqual([]);
  const [first] = await seedStream(log, 'a');
  double.writeForeign('orders-1', 3_000);
  const fresh = openLogOf(double);
  expect(await fresh.head()).toBe(first!.position);
  expect((await fresh.readAll(0n, 5)).map(reasonOf)).toEqual(['a']);
  await fresh.close();
});
