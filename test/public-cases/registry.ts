/**
 * The public cases: what really broke for people, from public trackers, by number. The numbering has gaps, and case 40 comes in parts.
 * Each is a test that names it by `publicCase`, or stands in `not-built.ts` with the edge that is missing. Parts that take a broker or another
 * event log stand in `distributed.ts`.
 */
export const PUBLIC_CASES = {
  '1': 'the model mints a new key for every retry',
  '2': 'reworded free text changes the hash',
  '3': 'a retry re-enters the model and the arguments change',
  '4': 'key order, nesting and array order',
  '5': '1 and 1.0',
  '6': 'large integers collapse',
  '7': 'Unicode forms',
  '9': 'null against absent, and money spelling',
  '10': 'key syntax',
  '11': 'scope: tenant, principal, route, credential rotation',
  '12': 'a rejected request poisons the key',
  '14': 'guessing a key on the server',
  '15': 'the key never reaches the wire',
  '16': 'deduplication silently switched off',
  '17': 'an expired in-progress record means "run again"',
  '18': 'stuck in progress for ever',
  '20': 'a blocked event loop, and a second worker',
  '21': 'a zombie overwrites the newer attempt',
  '22': 'clock skew',
  '23': 'long work dispatched again by the platform',
  '24': 'waiting for a person must not time out',
  '25': 'a crash between two writes decides the outcome',
  '27': 'hidden retries below us',
  '28': 'gateway codes',
  '29': 'a saved 500',
  '30': 'SMTP accepted, the answer late',
  '31': 'ageing into "failed"',
  '32': 'a look-up that lies',
  '34': 'a late retry after the provider forgot the key',
  '36': 'a sequence gap loses events',
  '37': 'a relay crash, a backlog in silence, recovery sends again',
  '38': 'delivered twice at once, out of order, or poisoned',
  '39': 'a "success" that wrote nothing or wrote twice; a replay that sends again',
  '40a': 'a webhook before our own record',
  '40c': 'webhooks of the same second, reversed, duplicated in parallel',
  '40f': 'approve twice, approve and reject',
  '40g': 'approved A, executed B; an approval that expired in the queue',
  '40i': 'read your own write',
  '40k': 'erasure',
} as const;

export type PublicCaseId = keyof typeof PUBLIC_CASES;

/** The name that a case's tests stand under. */
export function publicCase(id: PublicCaseId): string {
  return `public case ${id}: ${PUBLIC_CASES[id]}`;
}
