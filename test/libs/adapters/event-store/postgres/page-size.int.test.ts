import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RecordedEvent } from '#domain';
import { createLogDatabase, openLog, type OpenLog } from '../../../../support/event-log-postgres.js';
import { seedStream } from '../../../../support/event-log-samples.js';
import type { TestDatabase } from '../../../../support/test-database.js';

/** As large as a sealed payload of the largest body; ten pages' worth would be far more than one page takes. */
const BIG = 350_000;
const EVENTS = 60;

let database: TestDatabase;
let writer: OpenLog;
let reader: OpenLog;
beforeAll(async () => {
  database = await createLogDatabase();
  writer = openLog(database.url);
  // A process of its own: what the writer keeps of its own appends is not what is tested.
  reader = openLog(database.url);
  for (let n = 0; n < EVENTS; n++) await seedStream(writer.log, randomText(BIG, n));
});
afterAll(async () => {
  await Promise.all([writer.close(), reader.close()]);
  await database.drop();
});

/** Text that compression gains little on, as ciphertext is. */
function randomText(length: number, seed: number): string {
  let state = seed + 1;
  const next = () => String.fromCharCode(33 + ((state = (state * 48_271) % 2_147_483_647) % 90));
  return Array.from({ length }, next).join('');
}

const sizeOf = (events: readonly RecordedEvent[]) => events.reduce((bytes, { event }) => bytes + JSON.stringify(event.data).length, 0);

it('a page is cut by its size, and paging still hands over everything in order', async () => {
  const positions: bigint[] = [];
  let pages = 0;
  for (let page = await reader.log.readAll(0n, 2_000); page.length > 0; page = await reader.log.readAll(positions.at(-1)!, 2_000)) {
    pages++;
    expect(sizeOf(page)).toBeLessThan(20_000_000);
    positions.push(...page.map(({ position }) => position));
  }
  expect(positions).toEqual(Array.from({ length: EVENTS }, (_, n) => BigInt(n + 1)));
  expect(pages).toBeGreaterThan(1);
});
