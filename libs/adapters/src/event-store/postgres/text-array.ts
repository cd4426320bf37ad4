/** Object ids of PostgreSQL's `text` type and the layout of `array_recv`: dimensions, has-null flag, element type, length, lower bound. */
const TEXT_OID = 25;
const HEADER_BYTES = 20;

/**
 * A `text[]` parameter in PostgreSQL's binary form. The driver would write an array as one quoted string and escape each member, which
 * for JSON texts costs more on both sides than all the rest of an append.
 */
export function textArray(values: readonly string[]): Buffer {
  const lengths = values.map((value) => Buffer.byteLength(value, 'utf8'));
  const size = lengths.reduce((sum, length) => sum + 4 + length, 0);
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + size);
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(0, 4);
  buffer.writeInt32BE(TEXT_OID, 8);
  buffer.writeInt32BE(values.length, 12);
  buffer.writeInt32BE(1, 16);
  let offset = HEADER_BYTES;
  values.forEach((value, index) => {
    offset = buffer.writeInt32BE(lengths[index]!, offset);
    offset += buffer.write(value, offset, 'utf8');
  });
  return buffer;
}
