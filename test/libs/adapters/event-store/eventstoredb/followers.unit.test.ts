import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import type { EventStoreDbConnection } from '#adapters/event-store/eventstoredb/connection.js';
import { Followers } from '#adapters/event-store/eventstoredb/followers.js';
import { toRecordedEvent } from '#adapters/event-store/eventstoredb/stored-form.js';
import type { RecordedEvent } from '#domain';

/** An event as the client gives it, at this position of `$all`. */
const at = (position: number) => ({
  streamId: `operation-${position}`,
  id: `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`,
  revision: 0n,
  type: 'OperationCancelled',
  data: { reason: 'test' },
  metadata: { tenant: 't1', at: '2026-01-05T10:00:00.000Z', actor: 'a', correlation: 'c', causation: null, traceparent: null, chain: 'x' },
  isJson: true,
  position: { commit: BigInt(position), prepare: BigInt(position) },
});

class Subscription extends EventEmitter {
  pause(): void {}
  resume(): void {}
  async unsubscribe(): Promise<void> {}
  push(...positions: number[]): void {
    for (const position of positions) this.emit('data', { event: at(position) });
  }
}

it('a reader is not taken for another one that was at its place and has gone on', async () => {
  const subscriptions: Subscription[] = [];
  const subscribeToAll = () => {
    const subscription = new Subscription();
    subscriptions.push(subscription);
    return subscription;
  };
  const connection = { current: { subscribeToAll }, callOptions: {}, failed: () => undefined } as unknown as EventStoreDbConnection;
  const followers = new Followers(connection);
  const stored = [10, 20, 30, 40].map((position) => toRecordedEvent(at(position)));
  let committed = 1;
  const read = (after: bigint, limit: number) => {
    const plain = async () =>
      stored
        .slice(0, committed)
        .filter(({ position }) => position > after)
        .slice(0, limit);
    return followers.readAfter(after, limit, plain).then(positionsOf);
  };

  // One reader comes back to where it stood, and gets a follower there.
  expect(await read(0n, 9)).toEqual([10n]);
  expect(await read(10n, 9)).toEqual([]);
  expect(subscriptions).toHaveLength(1);
  // The next event reaches it by a plain read, those behind it by the follower, and it goes on.
  committed = 2;
  expect(await read(10n, 9)).toEqual([20n]);
  subscriptions[0]!.push(20, 30, 40);
  committed = 4;
  expect(await read(20n, 1)).toEqual([30n]);
  expect(await read(30n, 1)).toEqual([40n]);
  expect(await read(40n, 1)).toEqual([]);
  // Another reader stands where the first one was given something by a plain read.
  expect(await read(20n, 9)).toEqual([30n, 40n]);
  subscriptions[0]!.push(50);
  expect(await read(20n, 9)).toEqual([30n, 40n]);
});

function positionsOf(events: readonly RecordedEvent[]): bigint[] {
  return events.map(({ position }) => position);
}
