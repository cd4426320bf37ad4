import { createCipheriv, createDecipheriv } from 'node:crypto';
import { RandomBlock } from './random-block.js';
import { UnreadableSeal, type DataKey, type DataKeyRecord, type Sealer } from '#domain';

/** A key-encryption key, 32 bytes. Its version is stored with everything it wraps, so that keys can be rotated. */
export interface MasterKey {
  readonly version: string;
  readonly key: Uint8Array;
}

/** Sealed tokens are `s1.<key id>.<base64url>`, wrapped keys `w1.<master version>.<base64url>`; the bytes are IV, ciphertext, tag. */
export interface KeyWrapper {
  /** @throws UnreadableSeal when the master key's version is not configured or the record was changed */
  unwrap(record: DataKeyRecord): DataKey;
}

const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const KEY_ID_BYTES = 16;
const random = new RandomBlock();
const VERSION = /^[A-Za-z0-9_-]{1,32}$/;

/**
 * AES-256-GCM (NIST SP 800-38D) with a random 96-bit IV. A data key seals a handful of values, a master key wraps at most one key an
 * operation: far below the 2^32 invocations up to which random IVs are safe under one key.
 * @param masterKeys current one first; the others only unwrap
 * @throws RangeError for a master key of another size, or versions that could not be told apart later
 */
export function createSealer(masterKeys: readonly [MasterKey, ...MasterKey[]]): Sealer & KeyWrapper {
  checkMasterKeys(masterKeys);
  const [current] = masterKeys;
  const byVersion = new Map(masterKeys.map(({ version, key }) => [version, key]));
  return {
    newDataKey(operationId) {
      const keyId = random.take(KEY_ID_BYTES).toString('base64url');
      const key = random.take(KEY_BYTES);
      const wrapped = `w1.${current.version}.${encrypt(current.key, key, `${keyId}/${operationId}`)}`;
      return { dataKey: { keyId, key }, record: { keyId, operationId, wrapped } };
    },
    unwrap({ keyId, operationId, wrapped }) {
      const [scheme, version, bytes, more] = wrapped.split('.');
      const master = byVersion.get(version ?? '');
      if (scheme !== 'w1' || bytes === undefined || more !== undefined)
        throw new UnreadableSeal('A stored data key is not in the form w1.<version>.<bytes>.');
      if (!master) throw new UnreadableSeal(`A data key is wrapped with master key ${version}, which is not configured; add it back.`);
      return { keyId, key: decrypt(master, bytes, `${keyId}/${operationId}`) };
    },
    seal: ({ keyId, key }, plaintext, context) => `s1.${keyId}.${encrypt(key, Buffer.from(plaintext, 'utf8'), context)}`,
    open({ keyId, key }, sealed, context) {
      const [scheme, sealedWith, bytes, more] = sealed.split('.');
      if (scheme !== 's1' || bytes === undefined || more !== undefined)
        throw new UnreadableSeal('A sealed value is not in the form s1.<key id>.<bytes>.');
      if (sealedWith !== keyId) throw new UnreadableSeal('A sealed value names another data key than the one it is opened with.');
      return decrypt(key, bytes, context).toString('utf8');
    },
    keyIdOf: (sealed) => sealed.split('.')[1] ?? '',
  };
}

function checkMasterKeys(masterKeys: readonly MasterKey[]): void {
  for (const { version, key } of masterKeys) {
    if (!VERSION.test(version)) throw new RangeError('The version of a master key must be 1 to 32 of A-Z a-z 0-9 _ -, for example v1.');
    if (key.length !== KEY_BYTES) throw new RangeError(`Master key ${version} must be ${KEY_BYTES} bytes long, not ${key.length}.`);
    if (masterKeys.filter((other) => other.version === version).length > 1)
      throw new RangeError(`Master key version ${version} is there twice; give each key a version of its own.`);
  }
}

function encrypt(key: Uint8Array, plain: Uint8Array, context: string): string {
  const iv = random.take(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context, 'utf8'));
  return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64url');
}

function decrypt(key: Uint8Array, encoded: string, context: string): Buffer {
  const bytes = Buffer.from(encoded, 'base64url');
  // Decoding overlooks foreign characters and spare bits, so that a changed token could still open.
  if (bytes.toString('base64url') !== encoded) throw new UnreadableSeal('A sealed value is not in base64url.');
  if (bytes.length < IV_BYTES + TAG_BYTES) throw new UnreadableSeal('A sealed value is too short.');
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context, 'utf8')).setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw new UnreadableSeal('A sealed value was changed, moved from its place, or sealed with another key.');
  }
}
