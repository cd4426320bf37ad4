import { createHash } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHAIN_START, LogUnavailable, type RecordedEvent } from '#domain';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { chainIsIntact } from '#adapters/event-store/encoding.js';
import {
  appendBehind,
  failure,
  firstAppend,
  freshStream,
  newEvents,
  numbered,
  readToEnd,
  seedStream,
  writtenEvents,
} from '../../../../support/event-log-samples.js';
import { createLogDatabase, openLog, openLogWithKeys, openSession, type LogWithKeys } from '../../../../support/event-log-postgres.js';
import { appendRaw } from '../../../../support/event-log-raw.js';
import type { TestDatabase } from '../../../../support/test-database.js';

let database: TestDatabase;
let made: LogWithKeys;
let session: pg.Client;
beforeAll(async () => {
  database = await createLogDatabase();
  made = openLogWithKeys(database.url);
  session = await openSession(database.url);
});
afterAll(async () => {
  await session.end();
  await made.close();
  await database.drop();
});

describe('onefold.append_events', () => {
  it('answers for each command of a call, in their order', async () => {
    const [taken] = await seedStream(made.log, 'a');
    const repeated = firstAppend(freshStream(), newEvents('r1', 'r2'));
    await made.log.append(repeated);
    const head = await made.log.head();
    const rows = await appendRaw(
      session,
      firstAppend(freshStream(), newEvents('a', 'b')),
      firstAppend(taken!.stream, newEvents('x')),
      repeated,
      { ...firstAppend(freshStream(), newEvents('x')), expectedRevision: 4, previousChain: CHAIN_START },
      appendBehind(taken!, newEvents('c', 'd', 'e')),
      firstAppend(freshStream(), newEvents('f')),
    );
    expect(rows).toEqual([
      { command: 1, revision_before: -1, first_position: String(head + 1n), duplicate: false },
      { command: 2, revision_before: 0, first_position: null, duplicate: false },
      { command: 3, revision_before: 1, first_position: null, duplicate: true },
      { command: 4, revision_before: -1, first_position: null, duplicate: false },
      { command: 5, revision_before: 0, first_position: String(head + 3n), duplicate: false },
      { command: 6, revision_before: -1, first_position: String(head + 6n), duplicate: false },
    ]);
    const read = await readToEnd(made.log, head, 100);
    expect(read.map(({ revision }) => revision)).toEqual([0, 1, 1, 2, 3, 0]);
  });

  it('takes a call without commands', async () => {
    expect(await appendRaw(session)).toEqual([]);
  });

  it('waits for the commit of the one before, also where the operator made transactions stricter', async () => {
    await session.query(
      `do $$ begin execute format('alter database %I set default_transaction_isolation = %L', current_database(), 'repeatable read'); end $$`,
    );
    const strict = await openSession(database.url);
    const logs = numbered(3).map(() => openLog(database.url));
    try {
      const shown = await strict.query<{ level: string }>(`select current_setting('transaction_isolation') as level`);
      expect(shown.rows).toEqual([{ level: 'repeatable read' }]);
      const written = await Promise.all(numbered(60).map((reason, index) => seedStream(logs[index % 3]!.log, reason)));
      expect(new Set(written.flat().map(({ position }) => position)).size).toBe(60);
    } finally {
      await session.query(
        `do $$ begin execute format('alter database %I reset default_transaction_isolation', current_database()); end $$`,
      );
      await Promise.all([strict.end(), ...logs.map((each) => each.close())]);
    }
  });
});

describe('the bytes that are stored', () => {
  const stored = async (stream: string) => {
    const text = `select id, type, data, metadata, encode(chain, 'hex') as chain from onefold.events where stream = $1 order by revision`;
    return (await session.query<{ id: string; type: string; data: string; metadata: string; chain: string }>(text, [stream])).rows;
  };

  it('give the chain by SHA-256 over each row and the hash before it', async () => {
    const [first] = await seedStream(made.log, 'a "quoted" \\ text', 'é \u0000 \n');
    writtenEvents(await made.log.append(appendBehind((await made.log.readStream(first!.stream))[1]!, newEvents('c'))));
    let previous = '0'.repeat(64);
    const rows = await stored(first!.stream);
    expect(rows).toHaveLength(3);
    for (const { id, type, data, metadata, chain } of rows) {
      expect(createHash('sha256').update(`${previous}\n${id}\n${type}\n${data}\n${metadata}`, 'utf8').digest('hex')).toBe(chain);
      previous = chain;
    }
  });

  it.each([
    ['data', `data = replace(data, 'b', 'B')`],
    ['metadata', `metadata = replace(metadata, 'agent-1', 'agent-2')`],
    ['type', `type = 'OperationCancelled'`],
    ['id', `id = gen_random_uuid()`],
    ['chain', `chain = set_byte(chain, 0, get_byte(chain, 0) # 1)`],
  ])('do not pass for intact once %s was changed', async (_, change) => {
    const [first] = await seedStream(made.log, 'a', 'b', 'c');
    expect(chainIsIntact(nodeHashing, await made.log.readStream(first!.stream))).toBe(true);
    await session.query(`update onefold.events set ${change} where stream = $1 and revision = 1`, [first!.stream]);
    expect(chainIsIntact(nodeHashing, await made.log.readStream(first!.stream))).toBe(false);
  });

  it('do not pass for intact once an event was taken out', async () => {
    const [first] = await seedStream(made.log, 'a', 'b', 'c');
    const inside = openLog(database.url);
    await session.query('begin');
    await session.query('delete from onefold.events where stream = $1 and revision = 1', [first!.stream]);
    await session.query('update onefold.events set revision = 1 where stream = $1 and revision = 2', [first!.stream]);
    await session.query('commit');
    const events: readonly RecordedEvent[] = await inside.log.readStream(first!.stream);
    await inside.close();
    expect(events).toHaveLength(2);
    expect(chainIsIntact(nodeHashing, events)).toBe(false);
  });
});

describe('what one caller does wrong', () => {
  it('a data key that is there already fails its own append and no neighbour', async () => {
    const { log, sealer } = made;
    const { record } = sealer.newDataKey('op_twice');
    await log.append({ ...firstAppend(freshStream(), newEvents('a')), newDataKey: record });
    const bad = { ...firstAppend(freshStream(), newEvents('b')), newDataKey: record };
    const requests = [firstAppend(freshStream(), newEvents('c')), bad, firstAppend(freshStream(), newEvents('d'))];
    const results = await Promise.allSettled(requests.map((request) => log.append(request)));
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value.outcome : result.reason.name))).toEqual([
      'written',
      LogUnavailable.name,
      'written',
    ]);
    expect(await log.readStream(bad.stream)).toEqual([]);
  });

  it('a type that the table does not take fails its own append and no neighbour', async () => {
    const bad = firstAppend(freshStream(), [{ ...newEvents('x')[0]!, event: { ...failure('x'), type: 'T'.repeat(101) } as never }]);
    const results = await Promise.allSettled([bad, firstAppend(freshStream(), newEvents('d'))].map((request) => made.log.append(request)));
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });
});

describe('several processes', () => {
  it('append to the same streams: one winner an event, the others told where the stream stands', async () => {
    const logs = numbered(4).map(() => openLog(database.url));
    const stream = freshStream();
    const results = await Promise.all(
      numbered(40).map((reason, index) => logs[index % 4]!.log.append(firstAppend(stream, newEvents(reason)))),
    );
    expect(results.filter(({ outcome }) => outcome === 'written')).toHaveLength(1);
    expect(results.filter((result) => result.outcome === 'conflict' && result.actualRevision === 0)).toHaveLength(39);
    await Promise.all(logs.map((each) => each.close()));
  });

  it('read on over events of others, whether or not their own are cached', async () => {
    const [one, two] = [openLog(database.url), openLog(database.url)];
    const before = await one.log.head();
    const expected: string[] = [];
    for (let round = 0; round < 10; round++) {
      for (const { log } of [one, one, two]) expected.push((await seedStream(log, 'x'))[0]!.id);
      for (const { log } of [one, two]) expect((await readToEnd(log, before, 4)).map(({ id }) => id)).toEqual(expected);
    }
    await Promise.all([one.close(), two.close()]);
  });
});

describe('a log that is closed or away', () => {
  it('takes nothing more once it is closed', async () => {
    const closed = openLog(database.url);
    await closed.close();
    await expect(closed.log.append(firstAppend(freshStream(), newEvents('x')))).rejects.toThrow(LogUnavailable);
    await expect(closed.log.readStream('s')).rejects.toThrow(LogUnavailable);
    await expect(closed.log.head()).rejects.toThrow(LogUnavailable);
  });

  it('says that it is unavailable where the schema is missing', async () => {
    const url = new URL(database.url);
    url.pathname = '/does_not_exist';
    const away = openLog(url.href);
    await expect(away.log.readAll(0n, 1)).rejects.toThrow(LogUnavailable);
    await expect(away.log.readStreams(['s'])).rejects.toThrow(LogUnavailable);
    await away.close();
  });
});
