import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RecordedEvent } from '#domain';
import { TailCache } from '#adapters/event-store/postgres/tail-cache.js';
import { failure, sampleMetadata } from '../../../../support/event-log-samples.js';

const metadata = sampleMetadata();
const event = failure('x');

/** Events at the positions `from` to `to`. */
function events(from: number, to: number): RecordedEvent[] {
  return Array.from({ length: to - from + 1 }, (_, index) => ({
    id: randomUUID(),
    event,
    metadata,
    stream: 's',
    revision: 0,
    position: BigInt(from + index),
    chain: '',
  }));
}

const positions = (found: readonly RecordedEvent[] | null) => found && found.map(({ position }) => Number(position));
const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);

describe('the tail cache', () => {
  it('knows nothing at first', () => {
    expect(new TailCache().readAfter(0n, 10)).toBeNull();
  });

  it('gives what stands right behind a position, at most the limit', () => {
    const cache = new TailCache();
    cache.add(events(5, 9), 5);
    expect(positions(cache.readAfter(4n, 100))).toEqual([5, 6, 7, 8, 9]);
    expect(positions(cache.readAfter(6n, 2))).toEqual([7, 8]);
  });

  it('leaves to the database what it does not hold: earlier positions, and the end', () => {
    const cache = new TailCache();
    cache.add(events(5, 9), 5);
    for (const after of [0n, 3n, 9n, 10n, 1_000n]) expect(cache.readAfter(after, 10)).toBeNull();
  });

  it('forgets what stands before a gap, since the events in it are of other writers', () => {
    const cache = new TailCache();
    cache.add(events(1, 3), 3);
    cache.add(events(6, 7), 2);
    for (const after of [0n, 2n, 3n, 4n]) expect(cache.readAfter(after, 10)).toBeNull();
    expect(positions(cache.readAfter(5n, 10))).toEqual([6, 7]);
  });

  it('forgets everything when positions go backwards, as after a restored backup', () => {
    const cache = new TailCache();
    cache.add(events(100, 110), 11);
    cache.add(events(50, 51), 2);
    expect(cache.readAfter(100n, 10)).toBeNull();
    expect(positions(cache.readAfter(49n, 10))).toEqual([50, 51]);
  });

  it('keeps the newest 4,096 events at least and 8,192 at most', () => {
    const cache = new TailCache();
    for (let from = 1; from <= 100_000; from += 100) {
      cache.add(events(from, from + 99), 100);
      const head = from + 99;
      const held = head - Math.min(4_000, head);
      expect(cache.readAfter(BigInt(held), 1)).not.toBeNull();
      expect(cache.readAfter(BigInt(head - 8_193), 1)).toBeNull();
    }
  });

  it('keeps no more than 32 MB, counted by the bytes it was told', () => {
    const cache = new TailCache();
    for (let position = 1; position <= 200; position++) cache.add(events(position, position), 1_000_000);
    expect(cache.readAfter(200n - 33n, 1)).toBeNull();
    expect(positions(cache.readAfter(195n, 10))).toEqual([196, 197, 198, 199, 200]);
  });

  it('reads across its two halves', () => {
    const cache = new TailCache();
    for (let from = 1; from <= 6_000; from += 1_000) cache.add(events(from, from + 999), 1_000);
    expect(positions(cache.readAfter(0n, 6_000))).toEqual(range(1, 6_000));
    expect(positions(cache.readAfter(3_990n, 20))).toEqual(range(3_991, 4_010));
  });

  it('whatever was added, gives only what the log holds there', () => {
    const step = fc.record({
      gap: fc.constantFrom(0, 0, 0, 0, 1, 5),
      size: fc.integer({ min: 1, max: 2_000 }),
      bytes: fc.integer({ min: 1, max: 4_000_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.nat({ max: 12_000 }), fc.integer({ min: 1, max: 500 }), (steps, after, limit) => {
        const cache = new TailCache();
        let head = 0;
        for (const { gap, size, bytes } of steps) {
          cache.add(events(head + gap + 1, head + gap + size), bytes);
          head += gap + size;
        }
        const found = positions(cache.readAfter(BigInt(after), limit));
        if (found) expect(found).toEqual(range(after + 1, Math.min(after + limit, head)));
      }),
      { numRuns: 60 },
    );
  });
});
