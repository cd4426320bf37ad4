import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { LogOverloaded, LogUnavailable, type AppendRequest, type AppendResult, type RecordedEvent } from '#domain';
import { createSealer } from '#adapters/crypto/sealer.js';
import type { EventStoreDbEventLog } from '#adapters/event-store/eventstoredb/eventstoredb-event-log.js';
import { Slots } from '#adapters/event-store/eventstoredb/slots.js';
import {
  appendBehind,
  failure,
  firstAppend,
  freshStream,
  newEvents,
  numbered,
  reasonOf,
  seedStream,
  writtenEvents,
} from '../../../../support/event-log-samples.js';
import { EventStoreDbDouble } from '../../../../support/eventstoredb-double/eventstoredb-double.js';
import { KeptKeys, openLogOf } from './fixture.js';

/** A real protocol over real sockets: longer than what needs nothing but the processor. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let double: EventStoreDbDouble;
let log: EventStoreDbEventLog;
const keys = new KeptKeys();
beforeAll(async () => {
  double = await EventStoreDbDouble.start();
  double.writeForeign('$stats-127.0.0.1:2113', 2);
  log = openLogOf(double, { dataKeys: keys });
});
afterEach(() => {
  double.faults.clear();
  keys.kept.clear();
});
afterAll(async () => {
  await log.close();
  await double.close();
});

/** Events that were stored by a request of which it is not known which try did it. */
async function storedOnce(result: AppendResult, request: AppendRequest): Promise<void> {
  expect(['written', 'duplicate']).toContain(result.outcome);
  const stored = await log.readStream(request.stream);
  const own = stored.filter(({ id }) => request.events.some((event) => event.id === id));
  expect(own.map(({ id }) => id)).toEqual(request.events.map(({ id }) => id));
  if (result.outcome === 'written') expect(result.events).toEqual(own);
}

const sealer = createSealer([{ version: 'v1', key: Buffer.alloc(32, 7) }]);
const newKey = () => sealer.newDataKey('op_1').record;

describe('an append whose answer is lost', () => {
  it('after the commit: it is recognised as ours and stored once, with its data key (public case 39)', async () => {
    const [first] = await seedStream(log, 'a');
    const newDataKey = newKey();
    for (const request of [
      { ...firstAppend(freshStream(), newEvents('x', 'y')), newDataKey },
      { ...appendBehind(first!, newEvents('x', 'y')), newDataKey: newKey() },
    ]) {
      const cut = double.faults.next('append', 'cut_after_commit');
      const result = await log.append(request);
      await cut;
      await storedOnce(result, request);
      expect([...keys.kept.keys()]).toContain(request.newDataKey.keyId);
    }
  });

  it('before the commit: the repetition writes it', async () => {
    const request = firstAppend(freshStream(), newEvents('a', 'b'));
    const cut = double.faults.next('append', 'cut_before_commit');
    const written = writtenEvents(await log.append(request));
    await cut;
    expect(await log.readStream(request.stream)).toEqual(written);
  });

  it("and another's event stands there instead: a conflict, and the data key is taken back", async () => {
    const stream = freshStream();
    const taken = writtenEvents(await log.append(firstAppend(stream, newEvents('theirs'))));
    const request = { ...firstAppend(stream, newEvents('ours')), newDataKey: newKey() };
    const cut = double.faults.next('append', 'cut_before_commit');
    expect(await log.append(request)).toEqual({ outcome: 'conflict', actualRevision: 0 });
    await cut;
    expect(await log.readStream(stream)).toEqual(taken);
    expect(keys.kept.size).toBe(0);
  });

  it('after the commit, and others have appended behind it meanwhile: it is still ours', async () => {
    const stream = freshStream();
    const request = firstAppend(stream, newEvents('ours', 'too'));
    const stop = log.onAppended(() => undefined);
    const cut = double.faults.next('append', 'cut_after_commit');
    const appending = log.append(request);
    await cut;
    double.store.append(stream, 'any', [foreignTo(double, stream)]);
    const result = await appending;
    stop();
    expect(['written', 'duplicate']).toContain(result.outcome);
    expect(
      double.store
        .stream(stream)!
        .map(({ id }) => id)
        .slice(0, 2),
    ).toEqual(request.events.map(({ id }) => id));
    expect(double.store.stream(stream)).toHaveLength(3);
  });

  it('the read-back is lost: the append is repeated until it is known, and stored once', async () => {
    const request = firstAppend(freshStream(), newEvents('a', 'b'));
    const refused = double.faults.next('read_stream', 'unavailable', 3);
    const result = await log.append(request);
    await refused;
    await storedOnce(result, request);
  });

  it.each(['not_leader', 'unavailable'] as const)('%s, a few times: it is repeated until it is written', async (fault) => {
    const request = firstAppend(freshStream(), newEvents('a'));
    const refused = double.faults.next('append', fault, 3);
    await storedOnce(await log.append(request), request);
    await refused;
  });
});

/** An event as it stands in the stream already, under another id: what some other writer of the stream has appended. */
function foreignTo(of: EventStoreDbDouble, stream: string) {
  return { ...of.store.stream(stream)![0]!, id: crypto.randomUUID() };
}

describe('what a repetition is told', () => {
  it('other content under the same ids is told as what it is, and its data key is not kept (public case 39)', async () => {
    const request = { ...firstAppend(freshStream(), newEvents('first')), newDataKey: newKey() };
    const stored = writtenEvents(await log.append(request));
    const events = request.events.map((event) => ({ ...event, event: failure('another') }));
    const second = { ...request, events, newDataKey: newKey() };
    expect(await log.append(second)).toEqual({ outcome: 'duplicate', revision: 0 });
    expect([...keys.kept.keys()]).toEqual([request.newDataKey.keyId]);
    // The key of the first try comes again: what is stored needs it.
    expect(await log.append({ ...second, newDataKey: request.newDataKey })).toEqual({ outcome: 'duplicate', revision: 0 });
    expect([...keys.kept.keys()]).toEqual([request.newDataKey.keyId]);
    expect(await log.readStream(request.stream)).toEqual(stored);
  });
});

describe('a server that falls silent', () => {
  it('the identical append is repeated, then it is told that nobody knows; afterwards the log is usable again', async () => {
    const impatient = openLogOf(double, { dataKeys: keys, deadlineMs: 100, retryMs: 400 });
    const request = { ...firstAppend(freshStream(), newEvents('a', 'b')), newDataKey: newKey() };
    const before = double.calls.get('append')!;
    void double.faults.next('append', 'silence_before_commit', Infinity);
    await expect(impatient.append(request)).rejects.toThrow(LogUnavailable);
    expect(double.calls.get('append')! - before).toBeGreaterThan(1);
    expect(double.store.stream(request.stream)).toBeNull();
    // Nobody knows: the key stays.
    expect(keys.kept.size).toBe(1);
    double.faults.clear();
    await storedOnce(await impatient.append(request), request);
    await impatient.close();
  });

  it('after it has stored the append: the repetition is recognised', async () => {
    const impatient = openLogOf(double, { deadlineMs: 100 });
    const request = firstAppend(freshStream(), newEvents('a'));
    const silent = double.faults.next('append', 'silence_after_commit', 2);
    const result = await impatient.append(request);
    await silent;
    await storedOnce(result, request);
    await impatient.close();
  });

  it('a read is not waited for for ever, and after three the client is replaced', async () => {
    const impatient = openLogOf(double, { deadlineMs: 1 });
    const [first] = await seedStream(log, 'a');
    await impatient.readStream(first!.stream);
    const names = double.connectionNames.size;
    const silent = double.faults.next('read_stream', 'silence_before_commit', 3);
    for (const result of await Promise.allSettled(numbered(3).map(() => impatient.readStream(first!.stream)))) {
      expect(result.status === 'rejected' && result.reason).toBeInstanceOf(LogUnavailable);
    }
    await silent;
    expect((await impatient.readStream(first!.stream)).map(reasonOf)).toEqual(['a']);
    expect(double.connectionNames.size).toBe(names + 1);
    await impatient.close();
  });
});

describe('a cluster that can not be discovered', () => {
  it('is told as unavailable; the client is replaced, and works once the cluster is back', async () => {
    void double.faults.next('gossip', 'unavailable', Infinity);
    const clustered = openLogOf(double, { url: double.clusterUrl, retryMs: 100 });
    const request = firstAppend(freshStream(), newEvents('a'));
    await expect(clustered.append(request)).rejects.toThrow(LogUnavailable);
    await expect(clustered.head()).rejects.toThrow(LogUnavailable);
    await expect(clustered.check()).rejects.toThrow(LogUnavailable);
    double.faults.clear();
    await storedOnce(await clustered.append(request), request);
    await clustered.check();
    await clustered.close();
  });
});

describe('many appends while connections break', () => {
  it('each is stored exactly once, none is lost, and only classic appends were used', async () => {
    const requests = numbered(150).map((reason) => firstAppend(freshStream(), newEvents(reason)));
    for (const fault of [
      'cut_after_commit',
      'unavailable',
      'cut_before_commit',
      'not_leader',
      'cut_after_commit',
      'unavailable',
    ] as const) {
      void double.faults.next('append', fault, fault === 'unavailable' ? 10 : 1);
    }
    const results = await Promise.all(requests.map((request) => log.append(request)));
    for (const [index, request] of requests.entries()) await storedOnce(results[index]!, request);
    expect(double.calls.get('batch_append')).toBeUndefined();
  });
});

describe('bounds', () => {
  it('a full queue refuses, and goes on when there is room', async () => {
    let finish: () => void = () => undefined;
    const slots = new Slots('appends', { running: 1, waiting: 1 });
    const first = slots.run(() => new Promise<void>((resolve) => (finish = resolve)));
    const second = slots.run(async () => 'second');
    await expect(slots.run(async () => 'third')).rejects.toThrow(LogOverloaded);
    finish();
    await first;
    expect(await second).toBe('second');
    await slots.idle();
    expect(await slots.run(async () => 'fourth')).toBe('fourth');
  });

  it('a closed log refuses', async () => {
    const closing = openLogOf(double);
    const written: Promise<readonly RecordedEvent[]> = seedStream(closing, 'a');
    await closing.close();
    expect(await written).toHaveLength(1);
    await expect(seedStream(closing, 'b')).rejects.toThrow(LogUnavailable);
    await expect(closing.readAll(0n, 1)).rejects.toThrow(LogUnavailable);
  });
});
