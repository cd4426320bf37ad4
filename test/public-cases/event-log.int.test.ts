import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AppendRequest, EventLog, RecordedEvent } from '#domain';
import { DirectFeed } from '#adapters/feed/direct-feed.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { appendBehind, firstAppend, freshStream, newEvents, numbered, reasonOf, writtenEvents } from '../support/event-log-samples.js';
import { createLogDatabase, openLog, openSession, type OpenLog } from '../support/event-log-postgres.js';
import { FaultyProxy } from '../support/event-log-proxy.js';
import { appendRaw } from '../support/event-log-raw.js';
import { Tail, tailFaults } from '../support/event-log-tail.js';
import type { TestDatabase } from '../support/test-database.js';
import { publicCase } from './registry.js';

let database: TestDatabase;
let reader: OpenLog;
let opened: { close(): Promise<void> }[];
beforeEach(async () => {
  database = await createLogDatabase();
  opened = [];
  reader = keep(openLog(database.url));
});
afterEach(async () => {
  await Promise.all(opened.map((each) => each.close()));
  await database.drop();
});

function keep<T extends { close(): Promise<void> }>(made: T): T {
  opened.push(made);
  return made;
}

async function session() {
  const client = await openSession(database.url);
  keep({ close: () => client.end() });
  return client;
}

const single = (): AppendRequest => firstAppend(freshStream(), newEvents('x'));
const idsOf = (...requests: readonly AppendRequest[]) => requests.flatMap(({ events }) => events.map(({ id }) => id));

/** Fills the log up to position 100. */
async function hundredEvents(log: EventLog): Promise<AppendRequest[]> {
  const requests = numbered(100).map(() => single());
  await Promise.all(requests.map((request) => log.append(request)));
  return requests;
}

describe(publicCase('36'), () => {
  it.each(['commit', 'rollback'] as const)('A takes position 101 and waits, B comes, the relay polls, A ends with %s', async (end) => {
    const tail = new Tail(reader.log);
    const before = await hundredEvents(reader.log);
    const [slow, fast] = [await session(), await session()];
    const [a, b] = [single(), single()];
    await slow.query('begin');
    const [taken] = await appendRaw(slow, a);
    expect(taken!.first_position).toBe('101');
    const other = appendRaw(fast, b);
    expect((await reader.log.readAll(100n, 10)).map(({ id }) => id)).toEqual([]);
    await slow.query(end);
    const [got] = await other;
    expect(got!.first_position).toBe(end === 'commit' ? '102' : '101');
    await tail.stop();
    expect(tailFaults(tail.seen, [...idsOf(...before), ...(end === 'commit' ? idsOf(a) : []), ...idsOf(b)])).toEqual([]);
  });

  it('200 writers: every committed event is seen once and in order', async () => {
    const tails = [new Tail(reader.log), new Tail(keep(openLog(database.url)).log, 7)];
    const logs = numbered(4).map(() => keep(openLog(database.url)).log);
    const requests = numbered(200).map(() => single());
    await Promise.all(requests.map((request, index) => logs[index % 4]!.append(request)));
    await Promise.all(tails.map((tail) => tail.stop()));
    for (const { seen } of tails) expect(tailFaults(seen, idsOf(...requests))).toEqual([]);
  });

  it('three events in one transaction and the reader dies after the first: it is handed all three again', async () => {
    await reader.log.append(firstAppend(freshStream(), newEvents('1', '2', '3')));
    const seen: string[] = [];
    const feed = (dies: boolean) =>
      new DirectFeed({
        log: reader.log,
        checkpoints: new Checkpoints(reader.pool),
        consumer: {
          name: 'relay',
          handle: async (events: readonly RecordedEvent[]) => {
            seen.push(...events.slice(0, dies ? 1 : undefined).map(reasonOf));
            if (dies) throw new Error('killed');
          },
        },
        gatherMs: 0,
        onError: () => undefined,
      });
    await expect(feed(true).runOnce()).rejects.toThrow('killed');
    expect(await feed(false).lag()).toBe(3);
    expect(await feed(false).runOnce()).toBe(3);
    expect(seen).toEqual(['1', '1', '2', '3']);
    expect(await feed(false).lag()).toBe(0);
  });
});

describe(publicCase('39'), () => {
  it('(a) the same event id with other data: nothing is written, and reading back shows whose it is', async () => {
    const stream = freshStream();
    const [event] = newEvents('mine');
    const [stored] = writtenEvents(await reader.log.append(firstAppend(stream, [event!])));
    const other = { ...event!, event: newEvents('not mine')[0]!.event };
    const results = [
      await reader.log.append(firstAppend(stream, [other])),
      await reader.log.append(appendBehind(stored!, newEvents('next'))),
      await reader.log.append(firstAppend(stream, newEvents('late'))),
    ];
    expect(results.map(({ outcome }) => outcome)).toEqual(['duplicate', 'written', 'conflict']);
    expect((await reader.log.readStream(stream)).map(reasonOf)).toEqual(['mine', 'next']);
  });

  it('(b) an append that was committed and whose answer was lost is one event, however often it is sent', async () => {
    const proxy = await FaultyProxy.start(database.url);
    keep({ close: () => proxy.close() });
    const writer = keep(openLog(database.url, { appendUrl: proxy.url }));
    const request = single();
    const struck = proxy.breakNextAppend('lost_answer');
    const first = await writer.log.append(request).catch((error: Error) => error);
    await struck;
    const again = await writer.log.append(request);
    expect(first instanceof Error || ['written', 'duplicate'].includes(first.outcome)).toBe(true);
    expect(again.outcome).toBe('duplicate');
    expect(await reader.log.readStream(request.stream)).toHaveLength(1);
  });
});
