/**
 * The partition of a key as Java's producer chooses it, and `Partitioners.DefaultPartitioner` of kafkajs: other writers and readers of the
 * topic find an operation where they expect it. Own code since the client's works in BigInt, an order of magnitude slower, and would choose
 * anew with each retry.
 */
export function partitionOf(key: Buffer, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions;
}

const SEED = 0x9747b28c;
const M = 0x5bd1e995;

/** MurmurHash2, 32 bit, with Kafka's seed (org.apache.kafka.common.utils.Utils.murmur2); a signed integer. */
export function murmur2(data: Buffer): number {
  const { length } = data;
  const wholeEnd = length & ~3;
  let hash = SEED ^ length;
  for (let at = 0; at < wholeEnd; at += 4) {
    let word = Math.imul(data.readInt32LE(at), M);
    word = Math.imul(word ^ (word >>> 24), M);
    hash = Math.imul(hash, M) ^ word;
  }
  if (length > wholeEnd) {
    for (let at = length - 1; at >= wholeEnd; at--) hash ^= data[at]! << (8 * (at - wholeEnd));
    hash = Math.imul(hash, M);
  }
  hash = Math.imul(hash ^ (hash >>> 13), M);
  return hash ^ (hash >>> 15);
}
