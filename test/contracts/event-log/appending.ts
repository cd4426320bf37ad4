import { describe, expect, it } from 'vitest';
import { CHAIN_START, type AppendRequest, type AppendResult, type EventLog, type RecordedEvent } from '#domain';
import type { EventLogTraits } from '../event-log.contract.js';
import {
  appendBehind,
  failure,
  firstAppend,
  freshStream,
  newEvents,
  numbered,
  readToEnd,
  reasonOf,
  seedStream,
  writtenEvents,
} from '../../support/event-log-samples.js';

/** The positions of one append's events, first to last, when the log's head was `before`. */
function expectPositionsBehind(before: bigint, events: readonly RecordedEvent[], { positions }: EventLogTraits): void {
  const given = events.map(({ position }) => position);
  if (positions === 'gapless') expect(given).toEqual(given.map((_, index) => before + 1n + BigInt(index)));
  else [before, ...given].reduce((previous, next) => (expect(next).toBeGreaterThan(previous), next));
}

/** What an append is told that was stored before, by the identical request. */
function expectRepetition(result: AppendResult, stored: readonly RecordedEvent[], { tellsRepetition }: EventLogTraits): void {
  if (!tellsRepetition && result.outcome === 'written') expect(result.events).toEqual(stored);
  else expect(result).toEqual({ outcome: 'duplicate', revision: stored.at(-1)!.revision });
}

export function appends(log: () => EventLog, traits: EventLogTraits): void {
  describe('append at an exact revision', () => {
    it('numbers a new stream from revision 0 and gives back what will be read', async () => {
      const stream = freshStream();
      const events = newEvents('a', 'b', 'c');
      const before = await log().head();
      const written = writtenEvents(await log().append(firstAppend(stream, events)));
      expect(written.map(({ revision }) => revision)).toEqual([0, 1, 2]);
      expectPositionsBehind(before, written, traits);
      expect(written.map(({ id, event, metadata, stream: at }) => ({ id, event, metadata, at }))).toEqual(
        events.map((event) => ({ ...event, at: stream })),
      );
      expect(await log().readStream(stream)).toEqual(written);
    });

    it('goes on behind the revision that was read', async () => {
      const [first] = await seedStream(log(), 'a');
      const written = writtenEvents(await log().append(appendBehind(first!, newEvents('b', 'c'))));
      expect(written.map(({ revision }) => revision)).toEqual([1, 2]);
      expect((await log().readStream(first!.stream)).map(reasonOf)).toEqual(['a', 'b', 'c']);
    });

    it('tells the actual revision when another append came first', async () => {
      const [first, second] = await seedStream(log(), 'a', 'b');
      expect(await log().append(firstAppend(first!.stream, newEvents('x')))).toEqual({ outcome: 'conflict', actualRevision: 1 });
      expect(await log().append(appendBehind(first!, newEvents('x')))).toEqual({ outcome: 'conflict', actualRevision: 1 });
      expect((await log().readStream(first!.stream)).at(-1)).toEqual(second);
    });

    it('leaves no hole: a revision above the current one is a conflict, also on a stream that does not exist', async () => {
      const [first] = await seedStream(log(), 'a');
      const above = { ...appendBehind(first!, newEvents('x')), expectedRevision: 7 };
      expect(await log().append(above)).toEqual({ outcome: 'conflict', actualRevision: 0 });
      expect(await log().append({ ...above, stream: freshStream() })).toEqual({ outcome: 'conflict', actualRevision: 'no_stream' });
      expect(await log().readStream(first!.stream)).toEqual([first]);
    });

    it('stores the events of one append together or not at all', async () => {
      const [first] = await seedStream(log(), 'a');
      const head = await log().head();
      const stale = { ...appendBehind(first!, newEvents(...numbered(16))), expectedRevision: 1 };
      expect((await log().append(stale)).outcome).toBe('conflict');
      expect(await log().head()).toBe(head);
      const whole = writtenEvents(await log().append(appendBehind(first!, newEvents(...numbered(16)))));
      expect(whole).toHaveLength(16);
      expectPositionsBehind(head, whole, traits);
    });
  });
}

export function repetition(log: () => EventLog, traits: EventLogTraits): void {
  describe('an append that is sent again', () => {
    it('is recognised by its event ids, at any revision', async () => {
      const [first] = await seedStream(log(), 'a');
      for (const request of [firstAppend(freshStream(), newEvents('a', 'b')), appendBehind(first!, newEvents('b', 'c'))]) {
        const written = writtenEvents(await log().append(request));
        const head = await log().head();
        expectRepetition(await log().append(request), written, traits);
        expectRepetition(await log().append(request), written, traits);
        expect(await log().head()).toBe(head);
      }
    });

    it('is recognised also after others have appended behind it', async () => {
      const request = firstAppend(freshStream(), newEvents('a', 'b'));
      const written = writtenEvents(await log().append(request));
      const [behind] = writtenEvents(await log().append(appendBehind(written[1]!, newEvents('c'))));
      writtenEvents(await log().append(appendBehind(behind!, newEvents('d'))));
      expectRepetition(await log().append(request), written, traits);
      expect((await log().readStream(request.stream)).map(reasonOf)).toEqual(['a', 'b', 'c', 'd']);
    });

    it('is a conflict when only a part of it is the same, or stands elsewhere', async () => {
      const events = newEvents('a', 'b');
      const stream = freshStream();
      const stored = writtenEvents(await log().append(firstAppend(stream, events)));
      const conflict = { outcome: 'conflict', actualRevision: 1 };
      const parts = [
        [events[0]!, ...newEvents('x')],
        [...newEvents('x'), events[1]!],
        [...events, ...newEvents('x')],
        [...events].reverse(),
      ];
      for (const part of parts) expect(await log().append(firstAppend(stream, part))).toEqual(conflict);
      expect(await log().append(appendBehind(stored[0]!, events))).toEqual(conflict);
      expect(await log().readStream(stream)).toEqual(stored);
    });

    it('keeps what was stored first when the same ids come with other data', async () => {
      const events = newEvents('the first');
      const stream = freshStream();
      const stored = writtenEvents(await log().append(firstAppend(stream, events)));
      const other = events.map((event) => ({ ...event, event: failure('another') }));
      expect(await log().append(firstAppend(stream, other))).toEqual({ outcome: 'duplicate', revision: 0 });
      expect(await log().readStream(stream)).toEqual(stored);
    });

    it('is no repetition on another stream', async () => {
      const events = newEvents('a');
      writtenEvents(await log().append(firstAppend(freshStream(), events)));
      writtenEvents(await log().append(firstAppend(freshStream(), events)));
    });
  });
}

export function concurrency(log: () => EventLog, traits: EventLogTraits): void {
  describe('many appends at once', () => {
    it('one wins where all want the same place', async () => {
      const stream = freshStream();
      const results = await Promise.all(numbered(40).map((reason) => log().append(firstAppend(stream, newEvents(reason)))));
      expect(results.filter(({ outcome }) => outcome === 'written')).toHaveLength(1);
      expect(results.filter(({ outcome }) => outcome === 'conflict')).toHaveLength(39);
      expect(await log().readStream(stream)).toHaveLength(1);
    });

    it('each has its own result: a conflict, a repetition or a refused request fails no neighbour', async () => {
      const [taken] = await seedStream(log(), 'taken');
      const repeated = firstAppend(freshStream(), newEvents('repeated'));
      await log().append(repeated);
      const before = await log().head();
      const good = numbered(20).map((reason) => firstAppend(freshStream(), newEvents(reason)));
      const requests: AppendRequest[] = [
        ...good.slice(0, 10),
        firstAppend(taken!.stream, newEvents('x')),
        repeated,
        firstAppend(freshStream(), []),
        { ...firstAppend(freshStream(), newEvents('x')), expectedRevision: 3, previousChain: CHAIN_START },
        ...good.slice(10),
      ];
      const results = await Promise.allSettled(requests.map((request) => log().append(request)));
      const outcomes = results.map((result) => (result.status === 'fulfilled' ? result.value.outcome : 'refused'));
      const ten = Array<string>(10).fill('written');
      const repetition = traits.tellsRepetition ? 'duplicate' : expect.stringMatching(/^(duplicate|written)$/);
      expect(outcomes).toEqual([...ten, 'conflict', repetition, 'refused', 'conflict', ...ten]);
      const stored = await readToEnd(log(), before, 7);
      expect(new Set(stored.map(({ stream }) => stream))).toEqual(new Set(good.map(({ stream }) => stream)));
    });

    it('positions have no repetition and each append has its own in a row, where they count without any gap', async () => {
      const before = await log().head();
      const sizes = numbered(60).map((_, index) => 1 + (index % 5));
      const results = await Promise.all(sizes.map((size) => seedStream(log(), ...numbered(size))));
      const inOrder = results.flat().sort((a, b) => (a.position < b.position ? -1 : 1));
      expect(inOrder).toHaveLength(sizes.reduce((sum, size) => sum + size, 0));
      expectPositionsBehind(before, inOrder, traits);
      for (const events of results) {
        const first = inOrder.findIndex(({ id }) => id === events[0]!.id);
        expect(inOrder.slice(first, first + events.length)).toEqual(events);
      }
      expect(await log().head()).toBe(inOrder.at(-1)!.position);
    });

    it('positions follow the order of commits: what began after an append had returned stands behind it', async () => {
      const before = await log().head();
      const order: RecordedEvent[] = [];
      for (const reason of numbered(5)) order.push(...(await seedStream(log(), reason)));
      expect(order.map(({ position }) => position)).toEqual([...order].map(({ position }) => position).sort((a, b) => (a < b ? -1 : 1)));
      const read = await readToEnd(log(), before, 100);
      expect(read.map(({ id }) => id)).toEqual(order.map(({ id }) => id));
    });
  });
}
