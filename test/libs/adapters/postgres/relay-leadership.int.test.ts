import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { RelayLeadership, type LeadershipTerm } from '#adapters/postgres/relay-leadership.js';
import { createLogDatabase } from '../../../support/event-log-postgres.js';
import type { TestDatabase } from '../../../support/test-database.js';

const WITHOUT_HEARTBEATS = { heartbeatEveryMs: 2 ** 30 };

let database: TestDatabase;
let pool: Pool;
let name: string;
let count = 0;
const opened: RelayLeadership[] = [];
const terms: LeadershipTerm[] = [];

beforeAll(async () => {
  database = await createLogDatabase();
  pool = openPool({ url: database.url, onIdleError: () => undefined });
});
beforeEach(() => {
  name = `relay-${++count}`;
});
afterEach(async () => {
  await Promise.all(terms.splice(0).map((term) => term.release()));
  await Promise.all(opened.splice(0).map((leadership) => leadership.close()));
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

function candidate(options: { idleTimeoutMs?: number; heartbeatEveryMs?: number } = {}): RelayLeadership {
  const leadership = new RelayLeadership({ url: database.url, name, applicationName: `test-${name}`, ...options });
  opened.push(leadership);
  return leadership;
}

async function acquire(leadership: RelayLeadership): Promise<LeadershipTerm | null> {
  const term = await leadership.tryAcquire();
  if (term) terms.push(term);
  return term;
}

async function won(leadership = candidate()): Promise<LeadershipTerm> {
  return expect
    .poll(() => acquire(leadership), { timeout: 20_000 })
    .not.toBeNull()
    .then(() => terms.at(-1)!);
}

const stored = () => new Checkpoints(pool).load(name);
const lost = (term: LeadershipTerm) =>
  new Promise<void>((resolve) => (term.signal.aborted ? resolve() : term.signal.addEventListener('abort', () => resolve())));

it('of several at once, one leads', async () => {
  const tried = await Promise.all(Array.from({ length: 6 }, () => acquire(candidate())));
  expect(tried.filter((term) => term !== null)).toHaveLength(1);
});

it('leaderships of different names do not meet', async () => {
  await won();
  name += '-other';
  expect(await acquire(candidate())).not.toBeNull();
});

it('moves the checkpoint forwards only, and the next term begins where it stands, one epoch later', async () => {
  const first = await won();
  expect(first.position).toBe(0n);
  expect(await first.advance(5n)).toBe(true);
  expect(await first.advance(5n)).toBe(true);
  await first.release();
  const second = await won();
  expect([second.epoch, second.position]).toEqual([first.epoch + 1n, 5n]);
  expect(await second.advance(4n)).toBe(false);
  expect(second.isHeld()).toBe(false);
  expect(await stored()).toBe(5n);
});

it('gives the lock back at once', async () => {
  const standby = candidate();
  const leader = await won();
  expect(await acquire(standby)).toBeNull();
  expect(await acquire(standby)).toBeNull();
  await leader.release();
  expect(leader.isHeld()).toBe(false);
  await won(standby);
});

it('an older epoch is fenced off even while its session lives', async () => {
  const stale = await won();
  expect(await stale.advance(3n)).toBe(true);
  // What a newer leader does first.
  await pool.query('update onefold.checkpoints set epoch = epoch + 1 where name = $1', [name]);
  expect(await stale.advance(9n)).toBe(false);
  expect(stale.isHeld()).toBe(false);
  expect(await stored()).toBe(3n);
});

it('notices when the server ends the session, and loses the lock with it', async () => {
  const term = await won();
  await pool.query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [`test-${name}`]);
  await lost(term);
  expect(term.isHeld()).toBe(false);
  expect(await term.advance(1n)).toBe(false);
  await won();
});

it('a leader that falls silent loses the lock to the server, and knows by its own counter', async () => {
  const silent = await won(candidate({ ...WITHOUT_HEARTBEATS, idleTimeoutMs: 400 }));
  const next = await won();
  expect(next.epoch).toBe(silent.epoch + 1n);
  expect(silent.isHeld()).toBe(false);
  expect(await silent.advance(7n)).toBe(false);
  expect(await stored()).toBe(0n);
});

it('heartbeats keep the lock for longer than the time-out', async () => {
  const term = await won(candidate({ idleTimeoutMs: 400, heartbeatEveryMs: 50 }));
  // Asks of the standby are what passes the time here.
  const standby = candidate();
  const begun = performance.now();
  while (performance.now() - begun < 1_200) expect(await acquire(standby)).toBeNull();
  expect(term.isHeld()).toBe(true);
  expect(await term.advance(1n)).toBe(true);
});
