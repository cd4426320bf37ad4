import { expect, it } from 'vitest';
import { LogOverloaded, LogUnavailable } from '#domain';
import { GatheringReader } from '#adapters/postgres/gathering-reader.js';

/** A source whose answers are held until the test lets them go. */
function heldSource() {
  const asked: { keys: readonly string[]; answer: (found: [string, number][]) => void; fail: (error: Error) => void }[] = [];
  let tell: () => void = () => undefined;
  const readAll = (keys: readonly string[]) =>
    new Promise<ReadonlyMap<string, number>>((resolve, reject) => {
      asked.push({ keys, answer: (found) => resolve(new Map(found)), fail: reject });
      tell();
    });
  const untilAsked = async (times: number) => {
    while (asked.length < times) await new Promise<void>((resolve) => (tell = resolve));
  };
  return { asked, readAll, untilAsked };
}

it('reads what is asked for in one turn together, and each key once', async () => {
  const { asked, readAll, untilAsked } = heldSource();
  const reader = new GatheringReader(readAll, 0);
  const answers = ['a', 'b', 'a'].map((key) => reader.read(key));
  await untilAsked(1);
  expect(asked[0]!.keys).toEqual(['a', 'b']);
  asked[0]!.answer([['a', 1]]);
  expect(await Promise.all(answers)).toEqual([1, 0, 1]);
});

it('reads what is asked for meanwhile anew: an answer under way may be older than the question', async () => {
  const { asked, readAll, untilAsked } = heldSource();
  const reader = new GatheringReader(readAll, 0);
  const before = reader.read('a');
  await untilAsked(1);
  const after = reader.read('a');
  asked[0]!.answer([['a', 1]]);
  expect(await before).toBe(1);
  await untilAsked(2);
  asked[1]!.answer([['a', 2]]);
  expect(await after).toBe(2);
});

it('asks for at most 1,000 keys at once, and leaves nobody out', async () => {
  const sizes: number[] = [];
  const reader = new GatheringReader(async (keys) => {
    sizes.push(keys.length);
    return new Map(keys.map((key) => [key, Number(key)]));
  }, -1);
  const answers = await Promise.all(Array.from({ length: 2_500 }, (_, index) => reader.read(String(index))));
  expect(sizes).toEqual([1_000, 1_000, 500]);
  expect(answers).toEqual(Array.from({ length: 2_500 }, (_, index) => index));
});

it('refuses what exceeds its bound, and serves the others', async () => {
  const { asked, readAll, untilAsked } = heldSource();
  const reader = new GatheringReader(readAll, 0);
  const first = reader.read('first');
  await untilAsked(1);
  const waiting = Array.from({ length: 5_000 }, () => reader.read('a'));
  await expect(reader.read('b')).rejects.toThrow(LogOverloaded);
  asked[0]!.answer([['first', 1]]);
  for (let batch = 1; batch <= 5; batch++) {
    await untilAsked(batch + 1);
    asked[batch]!.answer([['a', 2]]);
  }
  expect(await first).toBe(1);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([2]));
});

it('tells a failure to those it concerns, and reads on for the others', async () => {
  const { asked, readAll, untilAsked } = heldSource();
  const reader = new GatheringReader(readAll, 0);
  const failing = reader.read('a');
  await untilAsked(1);
  const next = reader.read('b');
  asked[0]!.fail(new LogUnavailable('away'));
  await expect(failing).rejects.toThrow('away');
  await untilAsked(2);
  asked[1]!.answer([['b', 2]]);
  expect(await next).toBe(2);
});

it('one key whose value can’t be read costs the others nothing', async () => {
  const reader = new GatheringReader(async (keys) => {
    if (keys.includes('poison')) throw new SyntaxError('not JSON');
    return new Map(keys.map((key) => [key, 1]));
  }, 0);
  const answers = await Promise.allSettled(['a', 'poison', 'b'].map((key) => reader.read(key)));
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});
