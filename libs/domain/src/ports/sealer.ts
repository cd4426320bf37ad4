import type { Sealed } from '../operation/events.js';
import type { DataKeyRecord } from './event-log.js';

/** A data key in the clear, for as long as one command needs it. */
export interface DataKey {
  readonly keyId: string;
  readonly key: Uint8Array;
}

/** Encrypts the personal parts of events. `context` binds a token to its place: it opens only with the same context. */
export interface Sealer {
  /** A fresh data key, and the record of it to store. */
  newDataKey(operationId: string): { readonly dataKey: DataKey; readonly record: DataKeyRecord };
  seal(dataKey: DataKey, plaintext: string, context: string): Sealed;
  /** @throws UnreadableSeal when the token was changed or moved */
  open(dataKey: DataKey, sealed: Sealed, context: string): string;
  /** The id of the data key that a token was sealed with. */
  keyIdOf(sealed: Sealed): string;
}

/** Stored data keys. Destroying one makes all that was sealed with it unreadable for good. */
export interface DataKeys {
  /** Keys by id; one that was destroyed is missing from the answer. At most 1,000 ids. @throws LogUnavailable */
  load(keyIds: readonly string[]): Promise<ReadonlyMap<string, DataKey>>;
  /** Destroys every key of an operation; returns how many there were. */
  destroy(operationId: string): Promise<number>;
}

export class UnreadableSeal extends Error {
  override readonly name = 'UnreadableSeal';
}
