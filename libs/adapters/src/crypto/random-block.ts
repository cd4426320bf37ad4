import { randomFillSync } from 'node:crypto';

const BLOCK_BYTES = 8_192;

/**
 * The system's random bytes, drawn in blocks: a call for a few of them costs as much as sealing a payload. What was handed out is wiped
 * from the block.
 */
export class RandomBlock {
  private readonly block = Buffer.alloc(BLOCK_BYTES);
  private offset = BLOCK_BYTES;

  /** @param bytes at most 8,192 */
  take(bytes: number): Buffer {
    if (this.offset + bytes > BLOCK_BYTES) {
      randomFillSync(this.block);
      this.offset = 0;
    }
    const end = this.offset + bytes;
    const taken = Buffer.from(this.block.subarray(this.offset, end));
    this.block.fill(0, this.offset, end);
    this.offset = end;
    return taken;
  }
}
