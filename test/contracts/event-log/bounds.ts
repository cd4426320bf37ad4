import { describe, expect, it } from 'vitest';
import { CHAIN_START, type AppendRequest, type EventLog } from '#domain';
import { firstAppend, freshStream, newEvents, numbered, writtenEvents } from '../../support/event-log-samples.js';

export function bounds(log: () => EventLog): void {
  describe('bounds', () => {
    const [event] = newEvents('x');
    const good = () => firstAppend(freshStream(), newEvents('x'));
    it.each<[string, () => AppendRequest]>([
      ['no event', () => firstAppend(freshStream(), [])],
      ['17 events', () => firstAppend(freshStream(), newEvents(...numbered(17)))],
      ['a stream without a name', () => firstAppend('', newEvents('x'))],
      ['a stream name of 101 characters', () => firstAppend('s'.repeat(101), newEvents('x'))],
      ['a stream name with a NUL', () => firstAppend('a\u0000b', newEvents('x'))],
      ['a negative revision', () => ({ ...good(), expectedRevision: -1, previousChain: CHAIN_START })],
      ['half a revision', () => ({ ...good(), expectedRevision: 0.5, previousChain: CHAIN_START })],
      ['a revision beyond 32 bits', () => ({ ...good(), expectedRevision: 2 ** 31, previousChain: CHAIN_START })],
      ['a revision without the chain hash at it', () => ({ ...good(), expectedRevision: 0 })],
      ['a chain hash without a revision', () => ({ ...good(), previousChain: CHAIN_START })],
      ['an id that is no UUID', () => firstAppend(freshStream(), [{ ...event!, id: 'x' }])],
    ])('an append with %s is refused with a reason and stores nothing', async (_, request) => {
      const head = await log().head();
      await expect(log().append(request())).rejects.toThrow(RangeError);
      expect(await log().head()).toBe(head);
    });

    it('takes 16 events and a stream name of 100 characters', async () => {
      const name = freshStream().padEnd(100, 'x');
      writtenEvents(await log().append(firstAppend(name, newEvents(...numbered(16)))));
      expect(await log().readStream(name)).toHaveLength(16);
    });

    it('reads 1,000 streams at once and refuses more', async () => {
      const streams = numbered(1_001).map(freshStream);
      expect((await log().readStreams(streams.slice(1))).size).toBe(1_000);
      await expect(log().readStreams(streams)).rejects.toThrow(RangeError);
    });

    it.each([
      [-1n, 10],
      [0n, 0],
      [0n, -1],
      [0n, 1.5],
      [0n, Number.NaN],
    ])('refuses to read from %s with limit %s', async (after, limit) => {
      await expect(log().readAll(after, limit)).rejects.toThrow(RangeError);
    });
  });
}
