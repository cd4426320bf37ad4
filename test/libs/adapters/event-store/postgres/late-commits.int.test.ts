import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AppendRequest, EventLog } from '#domain';
import { appendBehind, firstAppend, freshStream, newEvents, numbered, writtenEvents } from '../../../../support/event-log-samples.js';
import { createLogDatabase, openLog, openSession, type OpenLog } from '../../../../support/event-log-postgres.js';
import { appendRaw, sabotageAppends } from '../../../../support/event-log-raw.js';
import { Tail, tailFaults } from '../../../../support/event-log-tail.js';
import type { TestDatabase } from '../../../../support/test-database.js';

/** Public case 36: a reader that remembers a position must not pass one that is committed later. */
let database: TestDatabase;
let reader: OpenLog;
let opened: { close(): Promise<void> }[];
beforeEach(async () => {
  database = await createLogDatabase();
  opened = [];
  reader = await keep(openLog(database.url));
});
afterEach(async () => {
  await Promise.all(opened.map((each) => each.close()));
  await database.drop();
});

async function keep<T extends { close(): Promise<void> }>(made: T): Promise<T> {
  opened.push(made);
  return made;
}

async function session(): Promise<pg.Client> {
  const client = await openSession(database.url);
  await keep({ close: () => client.end() });
  return client;
}

const single = (): AppendRequest => firstAppend(freshStream(), newEvents('x'));
const idsOf = (request: AppendRequest) => request.events.map(({ id }) => id);

/** Until a writer waits for the lock of an open append, or, where nothing makes it wait, has passed it by; or none is left. */
async function overtakenOrWaitedFor(observer: pg.Client, position: bigint, isLast: () => boolean = () => false): Promise<void> {
  const text = `select (select count(*)::int from pg_locks where locktype = 'advisory' and not granted and database =
                          (select oid from pg_database where datname = current_database())) as waiting,
                       (select count(*)::int from onefold.events where position > $1) as passed`;
  for (let rounds = 0; rounds < 5_000 && !isLast(); rounds++) {
    const { rows } = await observer.query<{ waiting: number; passed: number }>(text, [String(position)]);
    if (rows[0]!.waiting > 0 || rows[0]!.passed > 0) return;
  }
  if (!isLast()) throw new Error('No other writer came.');
}

/** Until the tail stands at the end of what anyone can see now. */
async function caughtUp(tail: Tail, log: EventLog): Promise<void> {
  const head = await log.head();
  for (let rounds = 0; tail.position < head && rounds < 100_000; rounds++) await new Promise((resolve) => setImmediate(resolve));
  expect(tail.position).toBeGreaterThanOrEqual(head);
}

/** One append stays open, another is made meanwhile, the tail reads, and then the first one ends. */
async function openAndOvertake(end: 'commit' | 'rollback'): Promise<string[]> {
  const [slow, fast, observer] = [await session(), await session(), await session()];
  const tail = new Tail(reader.log);
  const [first, second] = [single(), single()];
  await slow.query('begin');
  const [row] = await appendRaw(slow, first);
  const other = appendRaw(fast, second);
  await overtakenOrWaitedFor(observer, BigInt(row!.first_position!));
  await caughtUp(tail, reader.log);
  await slow.query(end);
  await other;
  await tail.stop();
  return tailFaults(tail.seen, [...(end === 'commit' ? idsOf(first) : []), ...idsOf(second)]);
}

/** 200 writers in four processes' places, and transactions by plain SQL that stay open and are committed or rolled back. */
async function manyWriters(appendsEach: number): Promise<string[]> {
  const committed: string[] = [];
  const tails = [new Tail(reader.log), new Tail((await keep(openLog(database.url))).log, 7)];
  const logs = await Promise.all(numbered(4).map(() => keep(openLog(database.url))));
  // A reader beside its own writers is served from their cache as long as nobody else writes.
  tails.push(new Tail(logs[0]!.log));
  const writer = async ({ log }: OpenLog) => {
    let request = single();
    for (let count = 1; count <= appendsEach; count++) {
      const [event] = writtenEvents(await log.append(request));
      committed.push(event!.id);
      request = appendBehind(event!, newEvents('y'));
    }
  };
  const observer = await session();
  const holder = async (end: 'commit' | 'rollback', client: pg.Client) => {
    for (let round = 0; round < 3; round++) {
      const request = single();
      await client.query('begin');
      const [row] = await appendRaw(client, request);
      await overtakenOrWaitedFor(observer, BigInt(row!.first_position!), () => isFinished);
      await caughtUp(tails[0]!, reader.log);
      await client.query(end);
      if (end === 'commit') committed.push(...idsOf(request));
    }
  };
  let isFinished = false;
  const sessions = [await session(), await session()];
  const holding = Promise.all([holder('commit', sessions[0]!), holder('rollback', sessions[1]!)]);
  const writing = Promise.all(numbered(200).map((_, index) => writer(logs[index % 4]!)));
  void writing.finally(() => (isFinished = true)).catch(() => undefined);
  await Promise.all([holding, writing]);
  await Promise.all(tails.map((tail) => tail.stop()));
  expect(committed).toHaveLength(200 * appendsEach + 3);
  return tails.flatMap(({ seen }) => tailFaults(seen, committed));
}

describe('a tail', () => {
  it.each(['commit', 'rollback'] as const)('skips nothing when an append stays open and then ends with %s', async (end) => {
    expect(await openAndOvertake(end)).toEqual([]);
  });

  it('sees every event of 200 writers once and in order, beside transactions that stay open or roll back', async () => {
    expect(await manyWriters(4)).toEqual([]);
  });

  it('is not stalled by a transaction that has appended and never ends, and nothing of it is seen', async () => {
    await reader.log.append(single());
    const forgotten = await session();
    await forgotten.query('begin');
    await appendRaw(forgotten, single());
    expect(await reader.log.readAll(0n, 10)).toHaveLength(1);
    // The server ends it: here by hand, otherwise by idle_in_transaction_session_timeout.
    await (await session()).query('select pg_terminate_backend($1)', [(forgotten as unknown as { processID: number }).processID]);
    const [next] = writtenEvents(await reader.log.append(single()));
    expect(next!.position).toBe(2n);
  });
});

describe('these tests notice a log without the lock', () => {
  beforeEach(async () => sabotageAppends(await session()));

  it('that skips a late commit', async () => {
    expect(await openAndOvertake('commit')).toContain('1 committed events skipped');
  });

  it('that leaves a hole after a rollback', async () => {
    expect(await openAndOvertake('rollback')).toContain('positions are not 1, 2, 3 ...');
  });

  it('among 200 writers', async () => {
    const faults = await manyWriters(1);
    expect(faults.some((fault) => /committed events skipped/.test(fault))).toBe(true);
  });
});
