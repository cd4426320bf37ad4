import type { Identity } from '../operation/events.js';
import type { Hashing } from '../ports/hashing.js';
import { canonicalJson } from './canonical-json.js';
import { CLIENT_KEY_FIELD } from './identity-fields.js';

/** One version of the secret that operation ids and payload hashes are made with. */
export interface IdentitySecret {
  /** Written in front of what it made, for example `v1`. */
  readonly version: string;
  readonly secret: string;
}

/** The current secret first, then the older ones that stored operations may still have been made with. */
export type IdentitySecrets = readonly IdentitySecret[];

/** What is asked for: together these name one business intent, on every node and in every run. */
export interface Intent {
  readonly tenant: string;
  readonly actionType: string;
  readonly identity: Identity;
}

/** The names of one operation, all derived from its intent. */
export interface DerivedIdentity {
  /** `v1:` and 64 hex digits. */
  readonly idempotencyKey: string;
  /** `op_` and the first 32 of them. */
  readonly operationId: string;
  readonly stream: string;
  /** A UUID: the one form that every provider takes as an idempotency key. Used for new operations only; later the stored one counts. */
  readonly providerKey: string;
}

/** Hex digits in an operation id: 128 bits, so that two intents never meet. */
const ID_DIGITS = 32;
const OPERATION_ID = /^op_[0-9a-f]{32}$/;

/**
 * The identity under the current secret. The same intent gives the same one, with no look-up.
 * The MAC covers RFC 8785 text, which begins with `{`; every other use of the secret begins with a label (see `payload-hash.ts`), so that
 * nothing made for one purpose can pass for the other.
 */
export function deriveIdentity(hashing: Hashing, secrets: IdentitySecrets, intent: Intent): DerivedIdentity {
  return derive(hashing, currentSecret(secrets), canonicalIntent(intent));
}

/** The identities under the older secrets still valid: to be looked for before a new operation is planned, so that rotation splits nothing. */
export function olderIdentities(hashing: Hashing, secrets: IdentitySecrets, intent: Intent): DerivedIdentity[] {
  const older = secrets.slice(1);
  if (older.length === 0) return [];
  const text = canonicalIntent(intent);
  return older.map((secret) => derive(hashing, secret, text));
}

export function streamOf(operationId: string): string {
  return `operation-${operationId}`;
}

export function isOperationId(text: string): boolean {
  return OPERATION_ID.test(text);
}

/** @throws Error where there is none at all, which a checked configuration does not allow */
export function currentSecret(secrets: IdentitySecrets): IdentitySecret {
  const [current] = secrets;
  if (!current) throw new Error('At least one identity secret is needed.');
  return current;
}

/**
 * Business fields name an intent together with its action. A client's key names it alone (draft-ietf-httpapi-idempotency-key-header: a key
 * is not used again with another request), so that another action under it meets the first and is refused, and is not planned beside it.
 */
function canonicalIntent({ tenant, actionType, identity }: Intent): string {
  if (Object.hasOwn(identity, CLIENT_KEY_FIELD)) return canonicalJson({ tenant, identity });
  return canonicalJson({ tenant, action_type: actionType, identity });
}

function derive(hashing: Hashing, { version, secret }: IdentitySecret, text: string): DerivedIdentity {
  const mac = hashing.hmacSha256(secret, text);
  const idempotencyKey = `${version}:${mac}`;
  const operationId = `op_${mac.slice(0, ID_DIGITS)}`;
  return { idempotencyKey, operationId, stream: streamOf(operationId), providerKey: hashing.uuid5(idempotencyKey) };
}
