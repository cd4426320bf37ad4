import type { IHeaders } from 'kafkajs';
import { expect, it } from 'vitest';
import { operationIdOf, parkedHeaders } from '#adapters/feed/kafka/parking.js';

const place = { consumer: 'due-work', topic: 'events', partition: 3, offset: 12n };
const told = {
  onefold_parked_reason: 'no_value',
  onefold_parked_consumer: 'due-work',
  onefold_parked_topic: 'events',
  onefold_parked_partition: '3',
  onefold_parked_offset: '12',
};

it('keeps what a parked record had, and says over it where it stood and why it was put aside', () => {
  const headers = { ce_id: Buffer.from('1'), twice: ['a', 'b'], onefold_parked_reason: 'forged' };
  expect(parkedHeaders(place, { headers }, 'no_value')).toEqual({ ce_id: Buffer.from('1'), twice: ['a', 'b'], ...told });
});

// kafkajs 2.2.4 reads null header values and throws a TypeError when it is to write one.
it('empties header values that the client can not write', () => {
  const headers = { gone: null, twice: [null, 'b'] } as unknown as IHeaders;
  expect(parkedHeaders(place, { headers }, 'no_value')).toEqual({ gone: '', twice: ['', 'b'], ...told });
  expect(parkedHeaders(place, {}, 'no_value')).toEqual(told);
});

it('takes only an operation id for the operation of a record', () => {
  const id = `op_${'0123456789abcdef'.repeat(2)}`;
  expect(operationIdOf({ key: Buffer.from(id) })).toBe(id);
  expect(operationIdOf({ key: Buffer.from('anything') })).toBeNull();
  expect(operationIdOf({ key: null })).toBeNull();
});
