import type { Hashing } from './ports/hashing.js';

/** What the first event of a stream is chained to. */
export const CHAIN_START = '0'.repeat(64);

/**
 * Chain hash of one stored event: SHA-256 over the previous event's hash and this event's own stored text. It covers the ciphertext of
 * sealed parts and not what is in them, so a stream still proves itself after its data key was destroyed.
 */
export function chainHash(
  hashing: Hashing,
  previous: string,
  stored: { id: string; type: string; data: string; metadata: string },
): string {
  // Newline-separated: no part but the JSON texts could contain one, and JSON text escapes it.
  return hashing.sha256(`${previous}\n${stored.id}\n${stored.type}\n${stored.data}\n${stored.metadata}`);
}
