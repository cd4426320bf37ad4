import { createDecipheriv, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UnreadableSeal, type DataKey } from '#domain';
import { createSealer, type MasterKey } from '#adapters/crypto/sealer.js';

const master = (version = 'v1'): MasterKey => ({ version, key: randomBytes(32) });
const sealer = createSealer([master()]);
const CONTEXT = 'op_1/payload';
const { dataKey } = sealer.newDataKey('op_1');
const otherKey = sealer.newDataKey('op_1').dataKey;

const BASE64URL = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];

/** Texts that differ from `text` in one character; the last one is tried out in full, since not all its bits need to count. */
function* changedCharacters(text: string): Generator<string> {
  for (let at = 0; at < text.length; at++) {
    const others = at === text.length - 1 ? BASE64URL : ['A', 'B', 'z', '_', '-'];
    for (const other of [...others, '=', '.', ' ', '+', '/'].filter((each) => each !== text[at])) {
      yield text.slice(0, at) + other + text.slice(at + 1);
    }
  }
}

describe('the primitive', () => {
  // "The Galois/Counter Mode of Operation", the vectors handed to NIST for SP 800-38D: test cases 13 and 14, AES-256.
  const zeroKey: DataKey = { keyId: 'k', key: Buffer.alloc(32) };
  const token = (ciphertext: string, tag: string) =>
    `s1.k.${Buffer.concat([Buffer.alloc(12), Buffer.from(ciphertext + tag, 'hex')]).toString('base64url')}`;

  it('opens the known answers of AES-256-GCM', () => {
    expect(sealer.open(zeroKey, token('', '530f8afbc74536b9a963b4f1c4cb738b'), '')).toBe('');
    expect(sealer.open(zeroKey, token('cea7403d4d606b6e074ec5d3baf39d18', 'd0d1c8a799996bf0265b98b5d48ab919'), '')).toBe('\0'.repeat(16));
  });

  it('refuses them with another tag', () => {
    expect(() => sealer.open(zeroKey, token('', '530f8afbc74536b9a963b4f1c4cb738c'), '')).toThrow(UnreadableSeal);
  });

  it('a token is IV, ciphertext and tag with the context as additional data', () => {
    const bytes = Buffer.from(sealer.seal(dataKey, 'a text', CONTEXT).split('.')[2]!, 'base64url');
    const decipher = createDecipheriv('aes-256-gcm', dataKey.key, bytes.subarray(0, 12));
    decipher.setAAD(Buffer.from(CONTEXT)).setAuthTag(bytes.subarray(-16));
    expect(decipher.update(bytes.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8')).toBe('a text');
  });

  it('never uses an initialisation vector twice', () => {
    const vectors = Array.from({ length: 2_000 }, () =>
      Buffer.from(sealer.seal(dataKey, 'same', CONTEXT).split('.')[2]!, 'base64url').toString('hex', 0, 12),
    );
    expect(new Set(vectors).size).toBe(vectors.length);
  });
});

describe('a sealed value', () => {
  it('opens to what was sealed, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (plaintext, context) => {
        expect(sealer.open(dataKey, sealer.seal(dataKey, plaintext, context), context)).toBe(plaintext);
      }),
    );
    const big = 'é'.repeat(200_000);
    expect(sealer.open(dataKey, sealer.seal(dataKey, big, CONTEXT), CONTEXT)).toBe(big);
  });

  it('names the key it was sealed with and shows nothing of its content', () => {
    const sealed = sealer.seal(dataKey, 'account acc-1', CONTEXT);
    expect(sealer.keyIdOf(sealed)).toBe(dataKey.keyId);
    expect(sealed).toMatch(/^s1\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]+$/);
    expect(Buffer.from(sealed.split('.')[2]!, 'base64url').includes('acc-1')).toBe(false);
  });

  it.each(['op_2/payload', 'op_1/result', 'op_1/payloa', ''])('is bound to its place: it does not open at %j', (context) => {
    const sealed = sealer.seal(dataKey, 'a text', CONTEXT);
    expect(() => sealer.open(dataKey, sealed, context)).toThrow(UnreadableSeal);
  });

  it('does not open with another key, also where that claims the same id', () => {
    const sealed = sealer.seal(dataKey, 'a text', CONTEXT);
    expect(() => sealer.open(otherKey, sealed, CONTEXT)).toThrow(UnreadableSeal);
    expect(() => sealer.open({ keyId: dataKey.keyId, key: otherKey.key }, sealed, CONTEXT)).toThrow(UnreadableSeal);
  });

  it('does not open once any character of it was changed', () => {
    const sealed = sealer.seal(dataKey, 'a text of some length', CONTEXT);
    for (const changed of changedCharacters(sealed)) expect(() => sealer.open(dataKey, changed, CONTEXT)).toThrow(UnreadableSeal);
  });

  it('does not open once it was cut, lengthened, or is no token at all', () => {
    const sealed = sealer.seal(dataKey, 'a text', CONTEXT);
    const others = [...Array(sealed.length).keys()].map((length) => sealed.slice(0, length));
    for (const changed of [
      ...others,
      `${sealed}A`,
      `${sealed}AAAA`,
      `${sealed}=`,
      `${sealed}\n`,
      `${sealed.slice(0, -5)} ${sealed.slice(-5)}`,
      `${sealed}.AAAA`,
      ` ${sealed}`,
      sealed.replace('s1.', 's2.'),
    ]) {
      expect(() => sealer.open(dataKey, changed, CONTEXT)).toThrow(UnreadableSeal);
    }
  });
});

describe('a data key', () => {
  it('is new each time, 32 bytes, and its record does not show it', () => {
    const made = Array.from({ length: 200 }, () => sealer.newDataKey('op_1'));
    expect(new Set(made.map(({ record }) => record.keyId)).size).toBe(200);
    expect(new Set(made.map((each) => Buffer.from(each.dataKey.key).toString('hex'))).size).toBe(200);
    for (const { dataKey: each, record } of made) {
      expect(each.key).toHaveLength(32);
      expect(Buffer.from(record.wrapped.split('.')[2]!, 'base64url').includes(Buffer.from(each.key))).toBe(false);
    }
  });

  it('comes back from its record', () => {
    const { dataKey: each, record } = sealer.newDataKey('op_1');
    expect(sealer.unwrap(record).keyId).toBe(each.keyId);
    expect(Buffer.from(sealer.unwrap(record).key).equals(each.key)).toBe(true);
  });

  it('is bound to its id and its operation', () => {
    const { record } = sealer.newDataKey('op_1');
    expect(() => sealer.unwrap({ ...record, operationId: 'op_2' })).toThrow(UnreadableSeal);
    expect(() => sealer.unwrap({ ...record, keyId: otherKey.keyId })).toThrow(UnreadableSeal);
  });

  it('does not come back once any character of its record was changed', () => {
    const { record } = sealer.newDataKey('op_1');
    for (const wrapped of changedCharacters(record.wrapped)) expect(() => sealer.unwrap({ ...record, wrapped })).toThrow(UnreadableSeal);
  });
});

describe('master keys', () => {
  const [old, current] = [master('v1'), master('v2')];
  const { dataKey: oldDataKey, record } = createSealer([old]).newDataKey('op_1');
  const sealed = createSealer([old]).seal(oldDataKey, 'a text', CONTEXT);

  it('rotate: what an older one has wrapped stays readable, and new keys are wrapped with the current one', () => {
    const rotated = createSealer([current, old]);
    expect(rotated.open(rotated.unwrap(record), sealed, CONTEXT)).toBe('a text');
    const fresh = rotated.newDataKey('op_2').record;
    expect(fresh.wrapped).toMatch(/^w1\.v2\./);
    expect(() => createSealer([old]).unwrap(fresh)).toThrow(/master key v2, which is not configured; add it back/);
  });

  it('that are missing are named, and nothing is opened', () => {
    expect(() => createSealer([current]).unwrap(record)).toThrow(/master key v1, which is not configured; add it back/);
  });

  it('of the same version and another content open nothing', () => {
    expect(() => createSealer([master('v1')]).unwrap(record)).toThrow(UnreadableSeal);
  });

  it.each<[string, readonly [MasterKey, ...MasterKey[]], RegExp]>([
    ['a key of 16 bytes', [{ version: 'v1', key: randomBytes(16) }], /v1 must be 32 bytes long, not 16/],
    ['a version with a dot', [master('2026.1')], /1 to 32 of A-Z a-z 0-9 _ -/],
    ['no version', [master('')], /1 to 32 of A-Z a-z 0-9 _ -/],
    ['a version twice', [master('v1'), master('v1')], /v1 is there twice/],
  ])('with %s are refused at once', (_, keys, message) => {
    expect(() => createSealer(keys)).toThrow(RangeError);
    expect(() => createSealer(keys)).toThrow(message);
  });
});
