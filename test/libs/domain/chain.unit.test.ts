import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHAIN_START, chainHash } from '#domain';
import { nodeHashing as hashing } from '#adapters/crypto/hashing.js';
import { seeded } from './support/seeded.js';

const stored = { id: 'e-1', type: 'OperationPlanned', data: '{"a":1}', metadata: '{"tenant":"t1"}' };

describe('hash chain', () => {
  it('is SHA-256 over the previous hash and the stored texts, a line each', () => {
    const text = `${CHAIN_START}\ne-1\nOperationPlanned\n{"a":1}\n{"tenant":"t1"}`;
    expect(chainHash(hashing, CHAIN_START, stored)).toBe(hashing.sha256(text));
    expect(CHAIN_START).toMatch(/^0{64}$/);
  });

  it('changes with each part and with the event before', () => {
    const whole = chainHash(hashing, CHAIN_START, stored);
    for (const part of ['id', 'type', 'data', 'metadata'] as const) {
      expect(chainHash(hashing, CHAIN_START, { ...stored, [part]: `${stored[part]} ` })).not.toBe(whole);
    }
    expect(chainHash(hashing, whole, stored)).not.toBe(whole);
  });

  it('cannot be met by moving text from one part to the next', () => {
    const part = fc.json();
    seeded(
      fc.property(part, part, part, part, (data, metadata, otherData, otherMetadata) => {
        fc.pre(data !== otherData || metadata !== otherMetadata);
        const one = chainHash(hashing, CHAIN_START, { ...stored, data, metadata });
        const other = chainHash(hashing, CHAIN_START, { ...stored, data: otherData, metadata: otherMetadata });
        expect(one).not.toBe(other);
      }),
      { numRuns: 200 },
    );
  });
});
