import { describe, expect, it } from 'vitest';
import { type EventLog, type RecordedEvent } from '#domain';
import type { EventLogTraits } from '../event-log.contract.js';
import { firstAppend, freshStream, newEvents, numbered, readToEnd, seedStream, writtenEvents } from '../../support/event-log-samples.js';

export function reading(log: () => EventLog, traits: EventLogTraits): void {
  describe('reading', () => {
    it('readStreams gives each stream in order and an empty list for a missing one', async () => {
      const [one, two] = await Promise.all([seedStream(log(), 'a', 'b'), seedStream(log(), 'c')]);
      const missing = freshStream();
      const found = await log().readStreams([two[0]!.stream, missing, one[0]!.stream]);
      expect([...found.entries()]).toEqual([
        [two[0]!.stream, two],
        [missing, []],
        [one[0]!.stream, one],
      ]);
      expect((await log().readStreams([])).size).toBe(0);
    });

    it('readAll pages through the log, each event once, whatever the page size', async () => {
      const before = await log().head();
      const written = (await Promise.all(numbered(23).map((reason) => seedStream(log(), reason)))).flat();
      const inOrder = [...written].sort((a, b) => (a.position < b.position ? -1 : 1));
      for (const size of [1, 2, 7, 23, 1_000]) expect(await readToEnd(log(), before, size)).toEqual(inOrder);
    });

    it('readAll keeps to its limit, and gives less only at the end', async () => {
      const before = await log().head();
      await seedStream(log(), ...numbered(6));
      expect(await log().readAll(before, 5)).toHaveLength(5);
      expect(await log().readAll(before, 6)).toHaveLength(6);
      expect(await log().readAll(before, 7)).toHaveLength(6);
      expect(await log().readAll(await log().head(), 5)).toEqual([]);
      // Bytes that no log has yet; one that counts bytes has no place between its events to read from.
      const beyond = traits.positions === 'gapless' ? 1_000n : 2n ** 44n;
      expect(await log().readAll((await log().head()) + beyond, 5)).toEqual([]);
    });

    it.runIf(traits.positions === 'gapless')('readAll from 0 begins with position 1', async () => {
      await seedStream(log(), 'a');
      expect((await log().readAll(0n, 1)).map(({ position }) => position)).toEqual([1n]);
    });

    it('readAll from 0 begins with the first event of a stream', async () => {
      await seedStream(log(), 'a');
      const [first, second] = await log().readAll(0n, 2);
      expect(first!.revision).toBe(0);
      expect(second!.position).toBeGreaterThan(first!.position);
      expect(await log().readAll(0n, 1)).toEqual([first]);
    });
  });
}

export function subscribing(log: () => EventLog): void {
  describe('onAppended', () => {
    it('tells what was written, and nothing of conflicts and repetitions, until it is taken back', async () => {
      const told: RecordedEvent[] = [];
      const stop = log().onAppended((events) => told.push(...events));
      const request = firstAppend(freshStream(), newEvents('a', 'b'));
      const written = writtenEvents(await log().append(request));
      // Where a repetition is told as written it is told to everybody so, as the same events.
      const again = await log().append(request);
      if (again.outcome === 'written') expect(told.splice(written.length)).toEqual(written);
      await log().append(firstAppend(request.stream, newEvents('x')));
      expect(told).toEqual(written);
      stop();
      await seedStream(log(), 'c');
      expect(told).toEqual(written);
    });

    it('what a listener was told can be read at once', async () => {
      const before = await log().head();
      const reads: Promise<readonly RecordedEvent[]>[] = [];
      const stop = log().onAppended((events) => reads.push(log().readAll(before, events.length)));
      const written = await seedStream(log(), 'a', 'b');
      stop();
      expect((await Promise.all(reads)).flat()).toEqual(written);
    });
  });
}
