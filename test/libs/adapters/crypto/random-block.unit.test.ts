import { expect, it } from 'vitest';
import { RandomBlock } from '#adapters/crypto/random-block.js';

it('hands out no byte twice, over many blocks', () => {
  const random = new RandomBlock();
  const taken = Array.from({ length: 5_000 }, () => random.take(16).toString('hex'));
  expect(new Set(taken).size).toBe(5_000);
});

it('what was handed out stays as it was when more is taken', () => {
  const random = new RandomBlock();
  const first = random.take(32);
  const copy = Buffer.from(first);
  for (let n = 0; n < 1_000; n++) random.take(32);
  expect(first.equals(copy)).toBe(true);
  expect(first.equals(Buffer.alloc(32))).toBe(false);
});

it('gives a whole block at once', () => {
  expect(new RandomBlock().take(8_192)).toHaveLength(8_192);
});
