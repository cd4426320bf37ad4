import type { Hashing } from '../ports/hashing.js';
import { canonicalJsonWithout } from './canonical-json.js';
import { currentSecret, type IdentitySecret, type IdentitySecrets } from './operation-identity.js';

/** Keeps payload hashes apart from operation ids, which are made with the same secrets. */
const PURPOSE = 'onefold:payload-hash\n';

/**
 * `hs256-v1:` and the HMAC-SHA-256 of the payload's RFC 8785 text without its presentational parts. Keyed, since a plain hash of a short
 * payload can be guessed.
 * @param presentational RFC 6901 pointers, as the action declares them
 */
export function payloadHash(hashing: Hashing, secret: IdentitySecret, payload: unknown, presentational: readonly string[]): string {
  return hashOf(hashing, secret, canonicalJsonWithout(payload, presentational));
}

/** The payload's hash under every secret in force, the current one's first: an older one may have made the stored hash. */
export function payloadHashes(
  hashing: Hashing,
  secrets: IdentitySecrets,
  payload: unknown,
  presentational: readonly string[],
): [string, ...string[]] {
  const text = canonicalJsonWithout(payload, presentational);
  const current = hashOf(hashing, currentSecret(secrets), text);
  return [current, ...secrets.slice(1).map((secret) => hashOf(hashing, secret, text))];
}

function hashOf(hashing: Hashing, { version, secret }: IdentitySecret, text: string): string {
  return `hs256-${version}:${hashing.hmacSha256(secret, PURPOSE + text)}`;
}
