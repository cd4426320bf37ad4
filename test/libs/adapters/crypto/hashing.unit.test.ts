import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nodeHashing } from '#adapters/crypto/hashing.js';

/** RFC 9562 section 5.5, computed on the bytes and not on the digits. */
function uuid5(namespace: string, name: string): string {
  const bytes = createHash('sha1')
    .update(Buffer.concat([Buffer.from(namespace.replaceAll('-', ''), 'hex'), Buffer.from(name, 'utf8')]))
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | (5 << 4), 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

const DNS = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
const ONEFOLD = '6f6e6566-6f6c-64f1-a7c2-b3d4e5f60718';

describe('uuid5', () => {
  it('is computed here as in RFC 9562 appendix A.4', () => {
    expect(uuid5(DNS, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
  });

  it('is the same in the namespace of Onefold, for any name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (name) => {
        expect(nodeHashing.uuid5(name)).toBe(uuid5(ONEFOLD, name));
      }),
    );
  });

  it('has version 5 and the variant of RFC 9562', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        expect(nodeHashing.uuid5(name)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      }),
    );
  });

  it('is the same for the same name and differs between names', () => {
    expect(nodeHashing.uuid5('command-1:0')).toBe(nodeHashing.uuid5('command-1:0'));
    expect(nodeHashing.uuid5('command-1:0')).not.toBe(nodeHashing.uuid5('command-1:1'));
  });
});

describe('sha256', () => {
  it('gives the values of FIPS 180-4', () => {
    expect(nodeHashing.sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(nodeHashing.sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });

  it('is taken over UTF-8', () => {
    expect(nodeHashing.sha256('é')).toBe(
      createHash('sha256')
        .update(Buffer.from([0xc3, 0xa9]))
        .digest('hex'),
    );
  });
});

describe('hmacSha256', () => {
  it('gives the value of RFC 4231 test case 2', () => {
    expect(nodeHashing.hmacSha256('Jefe', 'what do ya want for nothing?')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
  });
});
