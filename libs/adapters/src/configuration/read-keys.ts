import { ROLES, type ApiKey, type Role, type VersionedKey } from './configuration.js';
import { didYouMean } from './did-you-mean.js';
import type { EnvironmentReader } from './environment-reader.js';

/** Below, a key could be guessed over the network in the long run. */
const API_KEY_LENGTH_MIN = 16;
const API_KEY_LENGTH_MAX = 256;
/** What a bearer token may consist of (RFC 6750 section 2.1). */
const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;
const TENANT = /^[A-Za-z0-9._-]{1,64}$/;
const VERSION = /^v[1-9]\d{0,5}$/;

/** `key:tenant:role`, comma separated. A fault names the entry by its number, never by its key. */
export function readApiKeys(reader: EnvironmentReader, name: string): readonly ApiKey[] {
  const keys: ApiKey[] = [];
  entriesOf(reader.secret(name)).forEach((entry, index) => {
    const fault = (rule: string, wayOut: string) => reader.fault(`${name}[${index + 1}]`, rule, wayOut);
    const [key = '', tenant = '', role = '', ...rest] = entry.split(':');
    if (role === '' || rest.length > 0) return fault('Must have three parts.', 'Write key:tenant:role, entries separated by commas.');
    if (key.length < API_KEY_LENGTH_MIN || key.length > API_KEY_LENGTH_MAX || !BEARER_TOKEN.test(key)) {
      return fault(
        `The key must have ${API_KEY_LENGTH_MIN} to ${API_KEY_LENGTH_MAX} characters of a-z, A-Z, 0-9 and ._~+/-.`,
        'Make a longer one, for example from 32 random bytes.',
      );
    }
    if (!TENANT.test(tenant)) return fault('The tenant must be 1 to 64 of a-z, A-Z, 0-9 and ._-.', 'Write for example t1.');
    if (!ROLES.includes(role as Role)) return fault(`The role must be one of ${ROLES.join(', ')}.`, didYouMean(role, ROLES));
    if (keys.some((other) => other.key === key))
      return fault('The key is there twice.', 'A key has one tenant and one role: keep one entry.');
    keys.push({ key, tenant, role: role as Role });
  });
  return keys;
}

/** `v2:<key>,v1:<key>`, the current one first, each key as hex or base64. */
export function readVersionedKeys(
  reader: EnvironmentReader,
  name: string,
  { bytesMin, bytesMax }: { bytesMin: number; bytesMax: number },
): readonly VersionedKey[] | null {
  const text = reader.secret(name);
  if (text === undefined) return null;
  const keys: VersionedKey[] = [];
  entriesOf(text).forEach((entry, index) => {
    const fault = (rule: string, wayOut: string) => reader.fault(`${name}[${index + 1}]`, rule, wayOut);
    const colon = entry.indexOf(':');
    const version = entry.slice(0, Math.max(colon, 0));
    if (!VERSION.test(version))
      return fault('Must start with a version.', 'Write v1:<key>, entries separated by commas, the current one first.');
    const bytes = decodeKey(entry.slice(colon + 1));
    if (bytes === null || bytes.length < bytesMin || bytes.length > bytesMax) {
      const size = bytesMin === bytesMax ? `exactly ${bytesMin}` : `at least ${bytesMin}`;
      return fault(`The key must be ${size} bytes, as hex or base64.`, `Make one with: openssl rand -hex ${bytesMin}`);
    }
    if (keys.some((other) => other.version === version))
      return fault(`The version ${version} is there twice.`, 'Give each key a version of its own.');
    keys.push({ version, bytes });
  });
  return keys;
}

function entriesOf(text: string | undefined): string[] {
  return text === undefined ? [] : text.split(',').map((entry) => entry.trim());
}

/** Hex where it can be hex, since 64 hex digits are base64 too. Also takes the URL-safe alphabet and missing padding. */
function decodeKey(text: string): Uint8Array | null {
  if (/^(?:[0-9a-fA-F]{2})+$/.test(text)) return Buffer.from(text, 'hex');
  return /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : null;
}
