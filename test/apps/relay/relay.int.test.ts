import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PublishUncertain } from '#adapters/broker/kafka/publisher.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { RELAY } from '#apps/relay/src/relay.js';
import type { RecordedEvent } from '#domain';
import { createLogDatabase, openLog, type OpenLog } from '../../support/event-log-postgres.js';
import { firstAppend, freshStream, newEvents, numbered, seedStream, writtenEvents } from '../../support/event-log-samples.js';
import type { TestDatabase } from '../../support/test-database.js';
import { RecordingPublisher } from './support/recording-publisher.js';
import { startRelay, type TestRelay } from './support/relay-fixture.js';

let database: TestDatabase;
let opened: OpenLog;
const relays: TestRelay[] = [];

beforeEach(async () => {
  database = await createLogDatabase();
  opened = openLog(database.url);
});
afterEach(async () => {
  await Promise.all(relays.splice(0).map(({ relay }) => relay.stop()));
  await opened.close();
  await database.drop();
});

function start(publisher: RecordingPublisher): TestRelay {
  const started = startRelay(database.url, opened, publisher);
  relays.push(started);
  return started;
}

const stored = () => new Checkpoints(opened.pool).load(RELAY);
const reaches = (position: bigint) => expect.poll(stored, { timeout: 20_000 }).toBe(position);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe('publishing the log', () => {
  it('hands on every event in order, goes on with later ones, and stops with its checkpoint at the end', async () => {
    const publisher = new RecordingPublisher();
    for (let stream = 0; stream < 300; stream++) await seedStream(opened.log, ...numbered(8));
    const { relay, metrics } = start(publisher);
    await reaches(2_400n);
    expect(publisher.positions).toEqual(upTo(2_400));
    await seedStream(opened.log, 'later');
    await reaches(2_401n);
    await relay.stop();
    expect(publisher.positions).toEqual(upTo(2_401));
    expect((await metrics.relayPublished.get()).values[0]!.value).toBe(2_401);
    expect((await metrics.relayPosition.get()).values[0]!.value).toBe(2_401);
  });

  it('moves the checkpoint only after the publish, and tells the age of what waits by the clock of the database', async () => {
    const publisher = new RecordingPublisher();
    let proceed = () => undefined as void;
    publisher.hold = () => new Promise((resolve) => (proceed = resolve));
    await seedStream(opened.log, 'one', 'two');
    const { relay } = start(publisher);
    await expect.poll(() => publisher.calls.length, { timeout: 10_000 }).toBe(1);
    expect(await stored()).toBe(0n);
    // The samples are from 10:00:01, and it is 10:00:31.
    expect(relay.status()).toEqual({ isLeader: true, oldestUnpublishedSeconds: 30 });
    proceed();
    await reaches(2n);
    await expect.poll(() => relay.status().oldestUnpublishedSeconds).toBe(0);
  });

  it('stop waits for the page under way', async () => {
    const publisher = new RecordingPublisher();
    let proceed = () => undefined as void;
    publisher.hold = () => new Promise((resolve) => (proceed = resolve));
    await seedStream(opened.log, 'one');
    const { relay } = start(publisher);
    await expect.poll(() => publisher.calls.length, { timeout: 10_000 }).toBe(1);
    const stopped = relay.stop();
    proceed();
    await stopped;
    expect(await stored()).toBe(1n);
    expect(relay.status()).toEqual({ isLeader: false, oldestUnpublishedSeconds: 0 });
  });

  it('publishes again from the checkpoint after an uncertain publish', async () => {
    const publisher = new RecordingPublisher();
    publisher.failures.push(new PublishUncertain('1'), new PublishUncertain('2'));
    await seedStream(opened.log, 'one', 'two', 'three');
    const { lines } = start(publisher);
    await reaches(3n);
    expect(publisher.calls).toEqual([
      [1n, 2n, 3n],
      [1n, 2n, 3n],
      [1n, 2n, 3n],
    ]);
    expect(lines.filter((line) => line.includes('stumbled'))).toHaveLength(2);
  });
});

describe('one leader', () => {
  it('a standby waits, and takes over where the leader stood', async () => {
    const [first, second] = [new RecordingPublisher(), new RecordingPublisher()];
    await seedStream(opened.log, 'one');
    const leader = start(first);
    await reaches(1n);
    const standby = start(second);
    await expect.poll(() => standby.lines.some((line) => line.includes('standby')), { timeout: 10_000 }).toBe(true);
    await leader.relay.stop();
    await seedStream(opened.log, 'two');
    await reaches(2n);
    expect([first.positions, second.positions]).toEqual([[1], [2]]);
  });

  it('stops publishing when the leadership is lost in the middle of a page, and begins again behind the checkpoint', async () => {
    const publisher = new RecordingPublisher();
    publisher.hold = (signal) =>
      new Promise((_, reject) => signal!.addEventListener('abort', () => reject(new PublishUncertain('stopped')), { once: true }));
    await seedStream(opened.log, 'one');
    const { lines } = start(publisher);
    await expect.poll(() => publisher.calls.length, { timeout: 10_000 }).toBe(1);
    publisher.hold = async () => undefined;
    await opened.pool.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test-relay'");
    await reaches(1n);
    expect(publisher.calls).toEqual([[1n], [1n]]);
    expect(lines.some((line) => line.includes('is lost'))).toBe(true);
  });
});

describe('an event that can not be handed on', () => {
  const parked = async () => {
    const text = 'select consumer, topic, record_offset, operation_id, reason from onefold.parked_records order by record_offset';
    return (await opened.pool.query(text)).rows as object[];
  };

  it('with broken stored JSON is parked by its position, told, and passed over', async () => {
    const seeded: RecordedEvent[] = [];
    for (let stream = 0; stream < 5; stream++) seeded.push(...(await seedStream(opened.log, 'event')));
    const operationOf = (index: number) => seeded[index]!.stream.slice('operation-'.length);
    await opened.pool.query("update onefold.events set data = '{' where position in (2, 3)");
    const publisher = new RecordingPublisher();
    // A log of its own: the one above remembers what it has appended.
    const fresh = openLog(database.url);
    const started = startRelay(database.url, fresh, publisher);
    await reaches(5n);
    await started.relay.stop();
    await fresh.close();
    expect(publisher.positions).toEqual([1, 4, 5]);
    const row = { consumer: 'relay', topic: 'onefold.events', reason: 'unreadable_event' };
    expect(await parked()).toEqual([
      { ...row, record_offset: '2', operation_id: operationOf(1) },
      { ...row, record_offset: '3', operation_id: operationOf(2) },
    ]);
    const told = started.lines.map((line) => JSON.parse(line) as { position?: string; reason_code?: string });
    expect(told.filter(({ reason_code }) => reason_code === 'unreadable_event').map(({ position }) => position)).toEqual(['2', '3']);
    expect((await started.metrics.parkedRecords.get()).values).toEqual([
      { labels: { consumer: 'relay', reason: 'unreadable_event' }, value: 2 },
    ]);
  });

  it('because CloudEvents has no room for a character of it, is parked; its neighbours are published', async () => {
    await seedStream(opened.log, 'before');
    const [event] = newEvents('bad');
    const stream = freshStream();
    const bad = { ...event!, metadata: { ...event!.metadata, actor: 'a\u0007' } };
    writtenEvents(await opened.log.append(firstAppend(stream, [bad])));
    await seedStream(opened.log, 'after');
    const publisher = new RecordingPublisher();
    start(publisher);
    await reaches(3n);
    expect(publisher.positions).toEqual([1, 3]);
    expect(await parked()).toEqual([
      {
        consumer: 'relay',
        topic: 'onefold.events',
        record_offset: '2',
        operation_id: stream.slice('operation-'.length),
        reason: 'unencodable_event',
      },
    ]);
  });
});
