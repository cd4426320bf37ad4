import type pg from 'pg';
import type { AppendRequest } from '#domain';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { encodeAppend } from '#adapters/event-store/encoding.js';

const APPEND =
  'select command, revision_before, first_position, duplicate from onefold.append_events($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12)';

export interface RawResult {
  readonly command: number;
  readonly revision_before: number;
  readonly first_position: string | null;
  readonly duplicate: boolean;
}

/** Calls `onefold.append_events` by plain SQL, in whatever transaction the session is in. */
export async function appendRaw(session: pg.Client, ...requests: readonly AppendRequest[]): Promise<RawResult[]> {
  const encoded = requests.map((request) => encodeAppend(nodeHashing, request));
  const events = encoded.flat();
  const keys = requests.flatMap(({ newDataKey }, index) => (newDataKey ? [{ command: index + 1, ...newDataKey }] : []));
  const { rows } = await session.query<RawResult>(APPEND, [
    requests.map(({ stream }) => stream),
    requests.map(({ expectedRevision }) => (expectedRevision === 'no_stream' ? -1 : expectedRevision)),
    encoded.map(({ length }) => length),
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ data }) => data),
    events.map(({ metadata }) => metadata),
    events.map(({ chain }) => chain),
    keys.map(({ command }) => command),
    keys.map(({ keyId }) => keyId),
    keys.map(({ operationId }) => operationId),
    keys.map(({ wrapped }) => wrapped),
  ]);
  return rows;
}

/**
 * Takes the lock out of `onefold.append_events` and lets a sequence give the positions: the log as it must not be, to show that a test
 * of it can fail. One event an append.
 */
export async function sabotageAppends(session: pg.Client): Promise<void> {
  const { rows } = await session.query<{ source: string }>(
    `select pg_get_functiondef(p.oid) as source from pg_proc p where p.proname = 'append_events' and p.pronamespace = 'onefold'::regnamespace`,
  );
  const withoutLock = replaceOnce(rows[0]!.source, /perform pg_advisory_xact_lock\(\d+\);/, '');
  const position = /\(select coalesce\(max\(position\), 0\) from onefold\.events\) \+ sum\(count\) over \(order by n\) - count \+ 1/;
  await session.query('create sequence onefold.positions');
  await session.query(replaceOnce(withoutLock, position, `nextval('onefold.positions')`));
}

function replaceOnce(text: string, pattern: RegExp, replacement: string): string {
  if (!pattern.test(text)) throw new Error(`append_events has no ${pattern.source} any more: adapt this sabotage to it.`);
  return text.replace(pattern, replacement);
}
