import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { EmbeddedPostgresError, systemErrorCode } from './errors.js';
import { POLL_INTERVAL_MS } from './postmaster.js';

/** How long to wait for a server. */
export interface Patience {
  /** While it says nothing at all. */
  readonly silenceMs: number;
  /** While it says that it is starting up: recovery replays the log since the last checkpoint, up to `max_wal_size`. */
  readonly recoveryMs: number;
}

/** `stopped`: the process ended, or says that it is shutting down. `silent`: no answer in time. */
export type Readiness = 'ready' | 'stopped' | 'silent' | 'recovering';

/** A connection to this machine is made in milliseconds; one that hangs is a server that does not work. */
const CONNECT_TIMEOUT_MS = 2000;

/** Connects again and again until the server takes a query. Throws when it refuses our password. */
export async function waitUntilReady(url: string, patience: Patience, hasStopped: () => Promise<boolean> | boolean): Promise<Readiness> {
  const begun = Date.now();
  let answer: Readiness = 'silent';
  while (Date.now() - begun < (answer === 'recovering' ? patience.recoveryMs : patience.silenceMs)) {
    if (await hasStopped()) return 'stopped';
    answer = await ask(url);
    if (answer === 'ready' || answer === 'stopped') return answer;
    await pause(POLL_INTERVAL_MS);
  }
  return answer;
}

async function ask(url: string): Promise<Readiness> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: CONNECT_TIMEOUT_MS });
  // A connection that breaks between two queries is reported here; the query that follows fails and tells the same.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return 'ready';
  } catch (error) {
    return interpret(error);
  } finally {
    // A hanging server does not answer the goodbye either: bounded by the same time.
    await Promise.race([client.end().catch(() => undefined), pause(CONNECT_TIMEOUT_MS, undefined, { ref: false })]);
  }
}

function interpret(error: unknown): Readiness {
  const code = systemErrorCode(error) ?? '';
  if (code === '57P03') return error instanceof Error && error.message.includes('shutting down') ? 'stopped' : 'recovering';
  // 28...: the password is wrong. 3D000: the database is missing. Neither gets better with time.
  if (code.startsWith('28') || code === '3D000') {
    throw new EmbeddedPostgresError(
      'start_failed',
      `the embedded PostgreSQL refuses our role (${code}): the file postgres-password does not fit its database; ` +
        'remove that file to have a new password set at the next start',
      { cause: error },
    );
  }
  return 'silent';
}
