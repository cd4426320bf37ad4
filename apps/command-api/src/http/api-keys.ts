import { timingSafeEqual } from 'node:crypto';
import type { Hashing } from '#domain';
import type { Caller, Role } from './access.js';

/** A key as it is configured. */
export interface ApiKey {
  readonly key: string;
  readonly tenant: string;
  readonly role: Role;
}

/** Hex digits of the keyed hash that an actor is named by: enough to tell keys apart, useless for finding one. */
const NAME_DIGITS = 12;
const BEARER = /^Bearer +([\x21-\x7e]+) *$/i;

/** The configured keys. Only their HMAC-SHA-256 under the pepper is kept. */
export class ApiKeyRing {
  private readonly callers = new Map<string, { readonly hash: Buffer; readonly caller: Caller }>();

  constructor(
    apiKeys: readonly ApiKey[],
    private readonly pepper: string,
    private readonly hashing: Hashing,
  ) {
    for (const { key, tenant, role } of apiKeys) {
      const hash = this.hash(key);
      const name = hash.slice(0, NAME_DIGITS);
      this.callers.set(name, { hash: Buffer.from(hash, 'hex'), caller: { tenant, role, actor: `${role}:${name}` } });
    }
  }

  /** The caller that an `Authorization` header names, or null where its key is none of ours. */
  find(authorization: string): Caller | null {
    const key = BEARER.exec(authorization)?.[1];
    if (key === undefined) return null;
    const hash = this.hash(key);
    const found = this.callers.get(hash.slice(0, NAME_DIGITS));
    return found && timingSafeEqual(found.hash, Buffer.from(hash, 'hex')) ? found.caller : null;
  }

  private hash(key: string): string {
    return this.hashing.hmacSha256(this.pepper, key);
  }
}
