import fc from 'fast-check';
import { Partitioners, type PartitionMetadata } from 'kafkajs';
import { expect, it } from 'vitest';
import { murmur2, partitionOf } from '#adapters/broker/kafka/partitioner.js';

it.each([
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
])('hashes %s as the Java client does (apache/kafka, UtilsTest.testMurmur2)', (text, hash) => {
  expect(murmur2(Buffer.from(text))).toBe(hash);
});

it('chooses the partition that the default partitioner of the client would', () => {
  const choose = Partitioners.DefaultPartitioner();
  const metadata = (count: number) => Array.from({ length: count }, (_, partitionId) => ({ partitionId, leader: 1 }) as PartitionMetadata);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), fc.integer({ min: 1, max: 256 }), (bytes, count) => {
      const key = Buffer.from(bytes);
      const theirs = choose({ topic: 't', partitionMetadata: metadata(count), message: { key, value: null } });
      expect(partitionOf(key, count)).toBe(theirs);
    }),
  );
});
