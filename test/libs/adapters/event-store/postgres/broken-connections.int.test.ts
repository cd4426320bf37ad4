import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LogUnavailable, type AppendResult, type EventLog, type RecordedEvent } from '#domain';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { AppendBatcher } from '#adapters/event-store/postgres/append-batcher.js';
import { AppendConnection } from '#adapters/event-store/postgres/append-connection.js';
import { chainIsIntact } from '#adapters/event-store/encoding.js';
import { FaultyProxy } from '../../../../support/event-log-proxy.js';
import {
  appendBehind,
  firstAppend,
  freshStream,
  newEvents,
  numbered,
  readToEnd,
  reasonOf,
  seedStream,
  writtenEvents,
} from '../../../../support/event-log-samples.js';
import { createLogDatabase, openLog, openSession, withPool } from '../../../../support/event-log-postgres.js';
import { chainOfAppends } from '../../../../support/event-log-load.js';
import type { TestDatabase } from '../../../../support/test-database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createLogDatabase();
});
afterAll(() => database.drop());

async function throughProxy(work: (proxy: FaultyProxy, log: EventLog) => Promise<void>, parameters = ''): Promise<void> {
  const proxy = await FaultyProxy.start(database.url);
  const opened = openLog(database.url, { appendUrl: proxy.url + parameters });
  try {
    await seedStream(opened.log, 'the connection stands');
    await work(proxy, opened.log);
  } finally {
    await opened.close();
    await proxy.close();
  }
}

/** An append of three commands at once, one of them a conflict. */
async function threeAtOnce(log: EventLog): Promise<{ results: AppendResult[]; streams: string[]; reasons: () => Promise<string[][]> }> {
  const [taken] = await seedStream(log, 'taken');
  const streams = [freshStream(), taken!.stream, freshStream()];
  const requests = [
    firstAppend(streams[0]!, newEvents('a', 'b')),
    firstAppend(streams[1]!, newEvents('x')),
    firstAppend(streams[2]!, newEvents('c')),
  ];
  const results = await Promise.all(requests.map((request) => log.append(request)));
  return { results, streams, reasons: async () => [...(await log.readStreams(streams)).values()].map((events) => events.map(reasonOf)) };
}

const conflict = { outcome: 'conflict', actualRevision: 0 };
const stored = [['a', 'b'], ['taken'], ['c']];

describe('a connection that is cut during an append', () => {
  it('after the commit, before the answer: the repetition is recognised, nothing is written twice', async () => {
    await throughProxy(async (proxy, log) => {
      const [taken] = await seedStream(log, 'taken');
      const cut = proxy.breakNextAppend('lost_answer');
      const one = firstAppend(freshStream(), newEvents('a', 'b'));
      const results = await Promise.all([one, firstAppend(taken!.stream, newEvents('x'))].map((request) => log.append(request)));
      await cut;
      expect(results).toEqual([{ outcome: 'duplicate', revision: 1 }, conflict]);
      expect((await log.readStream(one.stream)).map(reasonOf)).toEqual(['a', 'b']);
    });
  });

  it('before the statement arrived: the repetition writes it', async () => {
    await throughProxy(async (proxy, log) => {
      const stream = freshStream();
      const cut = proxy.breakNextAppend('lost_request');
      const written = writtenEvents(await log.append(firstAppend(stream, newEvents('a', 'b'))));
      await cut;
      expect(await log.readStream(stream)).toEqual(written);
    });
  });

  it('a statement that reaches the server long after its repetition changes nothing', async () => {
    await throughProxy(async (proxy, log) => {
      const before = await log.head();
      const cut = proxy.breakNextAppend('late_request');
      const request = firstAppend(freshStream(), newEvents('a'));
      const [first] = writtenEvents(await log.append(request));
      await cut;
      const [second] = writtenEvents(await log.append(appendBehind(first!, newEvents('b'))));
      await proxy.deliverLate();
      expect(await readToEnd(log, before, 10)).toEqual([first, second]);
    });
  });

  it('a server that falls silent is not waited for for ever', async () => {
    await throughProxy(async (proxy, log) => {
      const silent = proxy.breakNextAppend('silence');
      const request = firstAppend(freshStream(), newEvents('a'));
      const result = await log.append(request);
      await silent;
      expect(result).toEqual({ outcome: 'duplicate', revision: 0 });
    }, '?query_timeout=300');
  });

  it('and the caller never sees more than one of each, however often it is cut', async () => {
    await throughProxy(async (proxy, log) => {
      for (const fault of ['lost_answer', 'lost_request', 'late_request', 'lost_answer'] as const) {
        const cut = proxy.breakNextAppend(fault);
        await seedStream(log, fault).catch(() => undefined); // A lost answer is told as a repetition.
        await cut;
        const { results, reasons } = await threeAtOnce(log);
        expect(results.map(({ outcome }) => outcome)).toEqual(['written', 'conflict', 'written']);
        expect(await reasons()).toEqual(stored);
      }
    });
  });
});

describe('sessions that the server ends under load', () => {
  it('each append is written exactly once, and every caller learns the truth', async () => {
    const before = await withPool(
      database.url,
      async (pool) => (await pool.query('select max(position) as head from onefold.events')).rows[0].head,
    );
    const logs = numbered(2).map(() => openLog(database.url));
    const killer = await openSession(database.url);
    let isOver = false;
    const load = Promise.all(numbered(30).map((_, index) => chainOfAppends(logs[index % 2]!.log, 25)));
    void load.finally(() => (isOver = true)).catch(() => undefined);
    let ended = 0;
    const end = `select count(pg_terminate_backend(pid))::int as ended from pg_stat_activity
                 where application_name = 'onefold-append' and datname = current_database() and pid <> pg_backend_pid()
                   and ($1 or state = 'active')`;
    // Either at any moment or only in the midst of an append. A loop of statements is its own rhythm.
    for (let round = 0; !isOver && ended < 40; round++) ended += (await killer.query(end, [round % 3 === 0])).rows[0].ended as number;
    const chains = await load;
    expect(ended).toBeGreaterThan(5);
    const events = await readToEnd(logs[0]!.log, BigInt(before), 500);
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => BigInt(before) + 1n + BigInt(index)));
    expect(events).toHaveLength(30 * 25);
    for (const { stream, ids } of chains) {
      const read: readonly RecordedEvent[] = await logs[1]!.log.readStream(stream);
      expect(read.map(({ id }) => id)).toEqual(ids);
      expect(chainIsIntact(nodeHashing, read)).toBe(true);
    }
    await Promise.all([killer.end(), ...logs.map((each) => each.close())]);
  });
});

describe('a server that is not there', () => {
  it('all that wait are told in bounded time, closing does not hang on it, and once it is back appends go through', async () => {
    const proxy = await FaultyProxy.start(database.url);
    const { url } = proxy;
    await proxy.close();
    const away = new AppendBatcher(new AppendConnection({ url }), nodeHashing, () => undefined, { maxMs: 300, delayMs: 50 });
    const requests = numbered(200).map((reason) => firstAppend(freshStream(), newEvents(reason)));
    const results = await Promise.allSettled(requests.map((request) => away.append(request)));
    for (const result of results) expect(result.status === 'rejected' && result.reason).toBeInstanceOf(LogUnavailable);
    const returned = await FaultyProxy.start(database.url, Number(new URL(url).port));
    writtenEvents(await away.append(requests[0]!));
    await away.close();
    await returned.close();
  });
});
