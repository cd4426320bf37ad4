import { describe, expect, it } from 'vitest';
import { SharedTurns } from '#adapters/feed/kafka/shared-turns.js';
import { LogUnavailable, type FeedConsumer, type RecordedEvent } from '#domain';

const wanted = (): void => undefined;
const event = (stream: string): RecordedEvent => ({ stream }) as RecordedEvent;

/** Keeps the streams of each call; calls end when they are let go, and `fail` may end one with an error. */
class HeldConsumer implements FeedConsumer {
  readonly name = 'held';
  readonly calls: string[][] = [];
  fail: (streams: readonly string[]) => Error | null = () => null;
  private readonly held: (() => void)[] = [];
  private onCall: () => void = () => undefined;

  async handle(events: readonly RecordedEvent[]): Promise<void> {
    const streams = events.map(({ stream }) => stream);
    this.calls.push(streams);
    this.onCall();
    await new Promise<void>((resolve) => this.held.push(resolve));
    const failure = this.fail(streams);
    if (failure) throw failure;
  }

  async reached(calls: number): Promise<void> {
    while (this.calls.length < calls) await new Promise<void>((resolve) => (this.onCall = resolve));
  }

  letGo(): void {
    this.held.shift()!();
  }
}

describe('partitions that share the calls of a consumer', () => {
  function begin() {
    const consumer = new HeldConsumer();
    const turns = new SharedTurns(consumer);
    return { consumer, bring: (...streams: string[]) => turns.handle(streams.map(event), wanted), turns };
  }

  it('are one call where they come together, and another for what comes meanwhile', async () => {
    const { consumer, bring } = begin();
    const first = [bring('a1', 'a2'), bring('b1')];
    await consumer.reached(1);
    const later = [bring('a3'), bring('c1')];
    consumer.letGo();
    await Promise.all(first);
    await consumer.reached(2);
    consumer.letGo();
    await Promise.all(later);
    expect(consumer.calls).toEqual([
      ['a1', 'a2', 'b1'],
      ['a3', 'c1'],
    ]);
  });

  it('do not grow a call without bound, and a chunk that is larger goes alone', async () => {
    const { consumer, bring } = begin();
    const chunk = (name: string, size: number) => bring(...Array.from({ length: size }, () => name));
    const all = [chunk('a', 3_999), chunk('b', 1), chunk('c', 1), chunk('d', 9_000)];
    for (let call = 1; call <= 3; call++) {
      await consumer.reached(call);
      consumer.letGo();
    }
    await Promise.all(all);
    expect(consumer.calls.map(({ length }) => length)).toEqual([4_000, 1, 9_000]);
  });

  it('are told of the failure that is their own, and of no other', async () => {
    const { consumer, bring } = begin();
    consumer.fail = (streams) => (streams.includes('poison') ? new TypeError('x is not a function') : null);
    const [good, bad, alsoGood] = [bring('a'), bring('poison'), bring('c')];
    const failed = expect(bad).rejects.toThrow(TypeError);
    for (let call = 1; call <= 4; call++) {
      await consumer.reached(call);
      consumer.letGo();
    }
    await Promise.all([good, alsoGood, failed]);
    expect(consumer.calls).toEqual([['a', 'poison', 'c'], ['a'], ['poison'], ['c']]);
  });

  it('all wait where the failure says nothing about events, and no call is spent on each', async () => {
    const { consumer, bring } = begin();
    consumer.fail = () => new LogUnavailable('away');
    const all = [bring('a'), bring('b')].map((brought) => expect(brought).rejects.toThrow(LogUnavailable));
    await consumer.reached(1);
    consumer.letGo();
    await Promise.all(all);
    expect(consumer.calls).toHaveLength(1);
  });

  it('hand nothing over that is not wanted any more when its turn comes', async () => {
    const { consumer, bring, turns } = begin();
    const first = bring('a');
    await consumer.reached(1);
    let isOpen = true;
    const stopped = turns.handle([event('b')], () => {
      if (!isOpen) throw new Error('stopped');
    });
    const told = expect(stopped).rejects.toThrow('stopped');
    const other = bring('c');
    isOpen = false;
    consumer.letGo();
    await Promise.all([first, told]);
    await consumer.reached(2);
    consumer.letGo();
    await other;
    expect(consumer.calls).toEqual([['a'], ['c']]);
  });
});
