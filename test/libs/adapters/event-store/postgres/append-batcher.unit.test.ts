import { describe, expect, it, vi } from 'vitest';
import { LogOverloaded, LogUnavailable, type AppendRequest, type RecordedEvent } from '#domain';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { AppendBatcher } from '#adapters/event-store/postgres/append-batcher.js';
import { AppendRefused, AppendUncertain, type AppendCommand, type CommandRow } from '#adapters/event-store/postgres/append-connection.js';
import { firstAppend, freshStream, newEvents, numbered, reasonOf, writtenEvents } from '../../../../support/event-log-samples.js';

type Answer = (commands: readonly AppendCommand[]) => CommandRow[] | Promise<CommandRow[]>;

/** A connection that records what it is sent and answers as it is told, in the end with `written`. */
class FakeConnection {
  readonly batches: (readonly AppendCommand[])[] = [];
  readonly answers: Answer[] = [];
  closed = 0;
  private position = 0n;

  async append(commands: readonly AppendCommand[]): Promise<CommandRow[]> {
    this.batches.push(commands);
    const answer = this.answers.shift() ?? this.written;
    return answer(commands);
  }

  async close(): Promise<void> {
    this.closed++;
  }

  readonly written: Answer = (commands) =>
    commands.map(({ expected, events }) => {
      const firstPosition = this.position + 1n;
      this.position += BigInt(events.length);
      return { revisionBefore: expected, firstPosition, duplicate: false };
    });
}

function batcherOn(connection: FakeConnection, { maxMs = 10_000, delayMs = 1 } = {}) {
  const told: { events: readonly RecordedEvent[]; bytes: number }[] = [];
  const batcher = new AppendBatcher(connection, nodeHashing, (events, bytes) => told.push({ events, bytes }), { maxMs, delayMs });
  return { batcher, told };
}

const append = (reason = 'x', stream = freshStream()): AppendRequest => firstAppend(stream, newEvents(reason));
const uncertain: Answer = () => Promise.reject(new AppendUncertain('The connection broke.'));
const refused: Answer = () => Promise.reject(new AppendRefused('No.'));

/** An answer that waits until it is let go. */
function held(then: Answer): { answer: Answer; asked: Promise<void>; letGo: () => void } {
  let letGo = () => {};
  let ask = () => {};
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  const asked = new Promise<void>((resolve) => (ask = resolve));
  return {
    asked,
    letGo,
    answer: async (commands) => {
      ask();
      await gate;
      return then(commands);
    },
  };
}

describe('gathering', () => {
  it('sends one caller alone at once, and what arrives meanwhile as the next batch', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const first = held(connection.written);
    connection.answers.push(first.answer);
    const one = batcher.append(append());
    await first.asked;
    const others = numbered(9).map((reason) => batcher.append(append(reason)));
    first.letGo();
    await Promise.all([one, ...others]);
    expect(connection.batches.map(({ length }) => length)).toEqual([1, 9]);
  });

  it('takes at most 128 commands into one batch', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    await Promise.all(numbered(300).map((reason) => batcher.append(append(reason))));
    expect(connection.batches.map(({ length }) => length)).toEqual([128, 128, 44]);
  });

  it('takes at most 4 MB into one batch, and a larger command alone', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const sizes = [1_500_000, 1_500_000, 1_500_000, 5_000_000, 10];
    await Promise.all(sizes.map((size) => batcher.append(append('x'.repeat(size)))));
    const sent = connection.batches.map((batch) => batch.map(({ events }) => Math.floor(events[0]!.data.length / 500_000) * 500_000));
    expect(sent).toEqual([[1_500_000, 1_500_000, 0], [1_500_000], [5_000_000]]);
  });

  it('keeps the order on each stream, also where an earlier append did not fit', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const stream = freshStream();
    const requests = [append('x'.repeat(3_000_000)), append(`1${'x'.repeat(2_000_000)}`, stream), append('2', stream), append('other')];
    const order: string[] = [];
    await Promise.all(
      requests.map(async (request) => {
        const [event] = writtenEvents(await batcher.append(request));
        if (event!.stream === stream) order.push(reasonOf(event!).slice(0, 1));
      }),
    );
    expect(order).toEqual(['1', '2']);
    for (const batch of connection.batches) expect(new Set(batch.map((command) => command.stream)).size).toBe(batch.length);
    expect(connection.batches[0]).toHaveLength(2);
  });
});

describe('results', () => {
  it('each command gets its own', async () => {
    const connection = new FakeConnection();
    const { batcher, told } = batcherOn(connection);
    connection.answers.push(() => [
      { revisionBefore: -1, firstPosition: 41n, duplicate: false },
      { revisionBefore: 6, firstPosition: null, duplicate: false },
      { revisionBefore: -1, firstPosition: null, duplicate: false },
      { revisionBefore: 3, firstPosition: null, duplicate: true },
    ]);
    const behind = { ...append(), expectedRevision: 2, previousChain: '0'.repeat(64) };
    const results = await Promise.all([append('a'), append(), behind, append()].map((request) => batcher.append(request)));
    expect(writtenEvents(results[0]!)).toMatchObject([{ position: 41n, revision: 0 }]);
    expect(results.slice(1)).toEqual([
      { outcome: 'conflict', actualRevision: 6 },
      { outcome: 'conflict', actualRevision: 'no_stream' },
      { outcome: 'duplicate', revision: 0 },
    ]);
    expect(told.map(({ events }) => events.length)).toEqual([1]);
  });

  it('tells how many bytes the texts of the written events take', async () => {
    const connection = new FakeConnection();
    const { batcher, told } = batcherOn(connection);
    const request = append('x'.repeat(1_000));
    await batcher.append(request);
    const [{ event, metadata }] = request.events as [(typeof request.events)[number]];
    expect(told[0]!.bytes).toBe(JSON.stringify(event.data).length + JSON.stringify(metadata).length);
  });

  it('a request that cannot be stored is refused without being sent', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const unwritable = append();
    Object.assign(unwritable.events[0]!.event.data, { attempt: 1n });
    await expect(batcher.append(unwritable)).rejects.toThrow(TypeError);
    await expect(batcher.append(firstAppend(freshStream(), []))).rejects.toThrow(RangeError);
    expect(connection.batches).toEqual([]);
  });

  it('what the database refuses fails alone, and its neighbours are stored', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const bad = append('bad');
    const unlessBad: Answer = (commands) =>
      commands.some(({ stream }) => stream === bad.stream) ? refused(commands) : connection.written(commands);
    connection.answers.push(...Array<Answer>(4).fill(unlessBad));
    const results = await Promise.allSettled([append(), bad, append()].map((request) => batcher.append(request)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((results[1] as PromiseRejectedResult).reason).toBeInstanceOf(LogUnavailable);
  });
});

describe('overload', () => {
  it('refuses beyond 5,000 waiting appends, and takes new ones once there is room', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const first = held(connection.written);
    connection.answers.push(first.answer);
    const waiting = [batcher.append(append())];
    await first.asked;
    for (const reason of numbered(5_000)) waiting.push(batcher.append(append(reason)));
    await expect(batcher.append(append())).rejects.toThrow(LogOverloaded);
    first.letGo();
    await Promise.all(waiting);
    await batcher.append(append());
    expect(connection.batches.flat()).toHaveLength(5_002);
  });

  it('refuses beyond 64 MB of waiting appends, and takes new ones once there is room', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const first = held(connection.written);
    connection.answers.push(first.answer);
    const waiting = [batcher.append(append())];
    await first.asked;
    const reason = 'x'.repeat(1_000_000);
    for (let count = 0; count < 64; count++) waiting.push(batcher.append(append(reason)));
    await expect(batcher.append(append())).rejects.toThrow(LogOverloaded);
    first.letGo();
    await Promise.all(waiting);
    await batcher.append(append());
    expect(connection.batches.flat()).toHaveLength(66);
  });
});

describe('a connection that breaks', () => {
  it('the very same batch is sent again until there is an answer', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    connection.answers.push(uncertain, uncertain);
    await Promise.all([batcher.append(append('a')), batcher.append(append('b'))]);
    expect(connection.batches).toHaveLength(3);
    expect(connection.batches[1]).toEqual(connection.batches[0]);
    expect(connection.batches[2]).toEqual(connection.batches[0]);
  });

  it('what arrives meanwhile does not join it', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const first = held(uncertain);
    connection.answers.push(first.answer);
    const one = batcher.append(append());
    await first.asked;
    const two = batcher.append(append());
    first.letGo();
    await Promise.all([one, two]);
    expect(connection.batches.map(({ length }) => length)).toEqual([1, 1, 1]);
  });

  it('after the time limit all that wait are told that nobody knows, and the next append tries anew', async () => {
    const connection = new FakeConnection();
    const { batcher, told } = batcherOn(connection, { maxMs: 0 });
    const first = held(uncertain);
    connection.answers.push(first.answer);
    const waiting = [batcher.append(append())];
    await first.asked;
    for (const reason of numbered(300)) waiting.push(batcher.append(append(reason)));
    first.letGo();
    const results = await Promise.allSettled(waiting);
    expect(results.every((result) => result.status === 'rejected' && result.reason instanceof LogUnavailable)).toBe(true);
    expect(connection.batches).toHaveLength(1);
    expect(told).toEqual([]);
    writtenEvents(await batcher.append(append()));
  });

  it('an error that is certain fails its own batch only', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const first = held(() => Promise.reject(new Error('disk full')));
    connection.answers.push(first.answer);
    const one = batcher.append(append());
    await first.asked;
    const two = batcher.append(append());
    first.letGo();
    await expect(one).rejects.toThrow(LogUnavailable);
    writtenEvents(await two);
  });
});

describe('closing', () => {
  it('finishes what waits, then closes the connection, and takes nothing more', async () => {
    const connection = new FakeConnection();
    const { batcher } = batcherOn(connection);
    const first = held(connection.written);
    connection.answers.push(first.answer);
    const waiting = numbered(3).map((reason) => batcher.append(append(reason)));
    await first.asked;
    const closing = batcher.close();
    await expect(batcher.append(append())).rejects.toThrow(LogUnavailable);
    expect(connection.closed).toBe(0);
    first.letGo();
    await closing;
    expect(connection.closed).toBe(1);
    for (const result of await Promise.all(waiting)) writtenEvents(result);
  });

  it('an idle one closes at once', async () => {
    const connection = new FakeConnection();
    await batcherOn(connection).batcher.close();
    expect(connection.closed).toBe(1);
  });
});

describe('a listener with a bug', () => {
  it('shows as an uncaught exception and costs neither append nor listeners', async () => {
    const { AppendListeners } = await import('#adapters/event-store/append-listeners.js');
    const listeners = new AppendListeners();
    const others = vi.fn();
    listeners.add(() => {
      throw new Error('a bug');
    });
    listeners.add(others);
    const handlers = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    try {
      const uncaught = new Promise<Error>((resolve) => process.once('uncaughtException', resolve));
      listeners.tell([]);
      expect(others).toHaveBeenCalledOnce();
      expect((await uncaught).message).toBe('a bug');
    } finally {
      for (const handler of handlers) process.on('uncaughtException', handler);
    }
  });
});
