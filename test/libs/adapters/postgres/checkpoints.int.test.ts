import { afterAll, beforeAll, expect, it } from 'vitest';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { createLogDatabase } from '../../../support/event-log-postgres.js';
import type { TestDatabase } from '../../../support/test-database.js';

let database: TestDatabase;
let pool: Pool;
let checkpoints: Checkpoints;
beforeAll(async () => {
  database = await createLogDatabase();
  pool = openPool({ url: database.url });
  checkpoints = new Checkpoints(pool);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

it('a reader that never saved one begins at 0', async () => {
  expect(await checkpoints.load('nobody')).toBe(0n);
});

it('each reader has its own', async () => {
  expect(await checkpoints.advance('one', 0n, 5n)).toBe(true);
  expect(await checkpoints.advance('two', 0n, 7n)).toBe(true);
  expect(await checkpoints.advance('one', 5n, 6n)).toBe(true);
  expect(await checkpoints.load('one')).toBe(6n);
  expect(await checkpoints.load('two')).toBe(7n);
});

it('moves only from where it stands, and never backwards', async () => {
  expect(await checkpoints.advance('reader', 0n, 100n)).toBe(true);
  expect(await checkpoints.advance('reader', 0n, 200n)).toBe(false);
  expect(await checkpoints.advance('reader', 99n, 200n)).toBe(false);
  expect(await checkpoints.advance('reader', 100n, 99n)).toBe(false);
  expect(await checkpoints.load('reader')).toBe(100n);
});

it('a checkpoint that a crash took back is not passed over', async () => {
  // The reader believes to stand at 9; what is stored was taken back to 5, or to nothing at all.
  await checkpoints.advance('crashed', 0n, 5n);
  expect(await checkpoints.advance('crashed', 9n, 12n)).toBe(false);
  expect(await checkpoints.load('crashed')).toBe(5n);
  expect(await checkpoints.advance('never-stored', 9n, 12n)).toBe(false);
  expect(await checkpoints.load('never-stored')).toBe(0n);
});

it('of many that move it from the same place at once, one does', async () => {
  const moves = await Promise.all(Array.from({ length: 20 }, (_, index) => checkpoints.advance('raced', 0n, BigInt(index + 1))));
  expect(moves.filter((moved) => moved)).toHaveLength(1);
});

it('positions beyond 2^53 are kept exactly', async () => {
  await checkpoints.advance('far', 0n, 9_007_199_254_740_993n);
  expect(await checkpoints.load('far')).toBe(9_007_199_254_740_993n);
});
