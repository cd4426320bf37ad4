import type { Credentials } from '@eventstore/db-client';

export interface ConnectionSettings {
  readonly url: string;
  readonly credentials: Credentials;
}

/** Added where the operator has not said otherwise. Followers may lag; a dead peer is noticed within 20 s instead of never. */
const DEFAULTS: Readonly<Record<string, string>> = { nodePreference: 'leader', keepAliveInterval: '10000', keepAliveTimeout: '10000' };
const FORM = /^esdb(?:\+discover)?:\/\/(?:(?<user>[^:@/?]+):(?<password>[^@/?]+)@)?(?<hosts>[^@/?]+)\/?(?:\?(?<query>.*))?$/;
/** A server without TLS asks for none and the client sends none; they only choose the way an append takes, see `connection.ts`. */
const UNUSED: Credentials = { username: 'unused', password: 'unused' };

/**
 * Checks an EventStoreDB connection string and completes it.
 * @throws RangeError without quoting the string, which may hold a password
 */
export function connectionSettings(given: string, credentials?: Credentials): ConnectionSettings {
  const parts = FORM.exec(given.trim())?.groups;
  if (!parts) {
    throw new RangeError('EVENTSTORE_URL must look like esdb://user:password@host:2113?tls=true, with several hosts parted by commas.');
  }
  const options = (parts.query ?? '').split('&').filter((option) => option !== '');
  const names = new Set(options.map((option) => flat(option.split('=')[0]!)));
  const added = Object.entries(DEFAULTS).flatMap(([name, value]) => (names.has(flat(name)) ? [] : [`${name}=${value}`]));
  const url = `${given.trim().split('?')[0]!.replace(/\/+$/, '')}?${[...options, ...added].join('&')}`;
  const own =
    parts.user && parts.password ? { username: decodeURIComponent(parts.user), password: decodeURIComponent(parts.password) } : null;
  const insecure = options.some((option) => flat(option) === 'tls=false');
  const used = credentials ?? own ?? (insecure ? UNUSED : null);
  if (!used) throw new RangeError('EVENTSTORE_URL needs a user and a password (esdb://user:password@host:2113), unless it says tls=false.');
  return { url, credentials: used };
}

/** The client reads option names without regard to case, `-` and `_`. */
function flat(text: string): string {
  return text.trim().toLowerCase().replaceAll(/[_-]/g, '');
}
