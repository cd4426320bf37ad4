import fc, { type Arbitrary } from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeCloudEvent,
  encodeCloudEvent,
  EVENT_TYPES,
  UnencodableEvent,
  UnreadableRecord,
  type CloudEventRecord,
} from '#adapters/broker/cloud-events.js';
import { streamOf, type OperationEvent, type RecordedEvent } from '#domain';
import { anyEvent } from '../../domain/support/arbitraries.js';

/** What the CloudEvents type system allows in a string: anything but control characters, lone surrogates and noncharacters. */
const anyAttribute = fc
  .string({ unit: 'binary', maxLength: 40 })
  .filter((text) => !/[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u.test(text));
const operationId = fc.stringMatching(/^op_[0-9a-f]{32}$/);
const hex64 = fc.stringMatching(/^[0-9a-f]{64}$/);
const at = fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true }).map((date) => date.toISOString());

/** Any event of a known type, as it comes out of a log: what JSON can hold, and no more. */
const anyStored = anyEvent
  .filter(({ type }) => Object.hasOwn(EVENT_TYPES, type))
  .map((event) => JSON.parse(JSON.stringify(event)) as OperationEvent);

const anyRecorded: Arbitrary<RecordedEvent> = fc.record({
  id: fc.uuid(),
  stream: operationId.map(streamOf),
  revision: fc.nat(2 ** 31 - 1),
  position: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).filter((position) => String(position).length <= 19),
  chain: hex64,
  event: anyStored,
  metadata: fc.record({
    tenant: anyAttribute,
    at,
    actor: anyAttribute,
    correlation: anyAttribute,
    causation: fc.option(anyAttribute),
    traceparent: fc.option(fc.constant('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')),
  }),
});

const sample: RecordedEvent = {
  id: 'b9a1d2f0-0000-5000-8000-000000000001',
  stream: 'operation-op_00000000000000000000000000000001',
  revision: 3,
  position: 12n,
  chain: 'a'.repeat(64),
  event: { type: 'OperationFailed', data: { attempt: 1, code: 'http_402', reason: 'refusé', evidence: 'response' } },
  metadata: { tenant: 't1', at: '2026-01-05T10:00:01.000Z', actor: 'agent:1', correlation: 'c1', causation: null, traceparent: null },
};

/** A record as a consumer gets it: every part as bytes. */
function consumed({ key, value, headers }: ReturnType<typeof encodeCloudEvent>): CloudEventRecord & { headers: Record<string, Buffer> } {
  const bytes = Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)]));
  return { key: Buffer.from(key), value, headers: bytes };
}

const wire = (event: RecordedEvent) => consumed(encodeCloudEvent(event));

describe('encoding', () => {
  it('what is decoded is what was encoded, text by text, so that the chain still proves it', () => {
    fc.assert(
      fc.property(anyRecorded, (event) => {
        const decoded = decodeCloudEvent(wire(event));
        expect(decoded).toEqual({ kind: 'event', event });
        if (decoded.kind !== 'event') return;
        expect(JSON.stringify(decoded.event.event.data)).toBe(JSON.stringify(event.event.data));
        expect(JSON.stringify(decoded.event.metadata)).toBe(JSON.stringify(event.metadata));
      }),
      { numRuns: 500 },
    );
  });

  it('gives the attributes that CloudEvents 1.0 asks for in binary mode, and the data alone as value', () => {
    const { key, value, headers } = encodeCloudEvent(sample);
    expect(key).toBe('op_00000000000000000000000000000001');
    expect(value.toString()).toBe('{"attempt":1,"code":"http_402","reason":"refusé","evidence":"response"}');
    expect(headers).toEqual({
      ce_specversion: '1.0',
      ce_id: 'b9a1d2f0-0000-5000-8000-000000000001',
      ce_type: 'onefold.operation.failed.v1',
      ce_source: '/onefold/t1',
      ce_subject: 'op_00000000000000000000000000000001',
      ce_time: '2026-01-05T10:00:01.000Z',
      ce_partitionkey: 'op_00000000000000000000000000000001',
      ce_sequence: '0000000003',
      ce_position: '12',
      ce_chain: 'a'.repeat(64),
      ce_tenant: 't1',
      ce_actor: 'agent:1',
      ce_correlation: 'c1',
      'content-type': 'application/json',
    });
  });

  it('names attributes as CloudEvents allows: 1 to 20 lower-case letters and digits', () => {
    const { headers } = encodeCloudEvent({ ...sample, metadata: { ...sample.metadata, causation: 'x' } });
    const names = Object.keys(headers).filter((name) => name.startsWith('ce_'));
    for (const name of names) expect(name).toMatch(/^ce_[a-z0-9]{1,20}$/);
  });

  it('sequence values sort as text in the order of the revisions', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 31 - 1), fc.nat(2 ** 31 - 1), (one, other) => {
        const [a, b] = [one, other].map((revision) => encodeCloudEvent({ ...sample, revision }).headers['ce_sequence']!);
        expect(a! < b!).toBe(one < other);
      }),
    );
  });

  it('source is a URI reference whatever the tenant is called', () => {
    const { headers } = encodeCloudEvent({ ...sample, metadata: { ...sample.metadata, tenant: 'a b/ü' } });
    expect(headers['ce_source']).toBe('/onefold/a%20b%2F%C3%BC');
    expect(headers['ce_tenant']).toBe('a b/ü');
  });

  it.each([
    ['a control character', 'a\u0007'],
    ['a NUL', '\u0000'],
    ['a lone surrogate', '\ud800'],
    ['a noncharacter', '\uffff'],
  ])('refuses %s in an attribute, by position and name and without quoting it', (_, text) => {
    for (const name of ['tenant', 'actor', 'correlation', 'causation'] as const) {
      const event = { ...sample, metadata: { ...sample.metadata, [name]: `secret${text}` } };
      expect(() => encodeCloudEvent(event)).toThrow(UnencodableEvent);
      expect(() => encodeCloudEvent(event)).toThrow(/position 12 .*ce_(tenant|source|actor|correlation|causation)/);
      expect(() => encodeCloudEvent(event)).not.toThrow(/secret/);
    }
  });

  it('refuses a type that has none of ours, and a stream that is no operation', () => {
    const type = '__proto__' as OperationEvent['type'];
    expect(() => encodeCloudEvent({ ...sample, event: { type, data: {} } as OperationEvent })).toThrow(/position 12 .*type/);
    expect(() => encodeCloudEvent({ ...sample, stream: 'other-1' })).toThrow(/position 12 .*stream/);
  });
});

describe('decoding', () => {
  const reasonOf = (record: CloudEventRecord): string => {
    try {
      return decodeCloudEvent(record).kind;
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      return error.reason;
    }
  };
  const withHeaders = (headers: Record<string, unknown>): CloudEventRecord => {
    const record = wire(sample);
    return { ...record, headers: { ...record.headers, ...headers } as CloudEventRecord['headers'] };
  };

  it.each(Object.keys(encodeCloudEvent(sample).headers))('%s is needed', (name) => {
    expect(reasonOf(withHeaders({ [name]: undefined }))).toBe('missing_header');
    expect(reasonOf(withHeaders({ [name]: null }))).toBe('missing_header');
  });

  it.each([
    ['bad_header', { ce_specversion: '0.3' }],
    ['bad_header', { ce_id: 'x' }],
    ['bad_header', { ce_position: '0' }],
    ['bad_header', { ce_position: '1e3' }],
    ['bad_header', { ce_sequence: '-1' }],
    ['bad_header', { ce_sequence: '2147483648' }],
    ['bad_header', { ce_chain: 'A'.repeat(64) }],
    ['bad_header', { ce_time: 'yesterday' }],
    ['bad_header', { ce_source: '/onefold/t2' }],
    ['bad_header', { ce_tenant: 't2' }],
    ['bad_header', { ce_actor: Buffer.from([0xff]) }],
    ['bad_header', { 'content-type': 'text/plain' }],
    ['duplicate_header', { ce_id: ['b9a1d2f0-0000-5000-8000-000000000001', 'b9a1d2f0-0000-5000-8000-000000000002'] }],
    ['key_mismatch', { ce_subject: 'op_00000000000000000000000000000002' }],
    ['key_mismatch', { ce_partitionkey: 'op_00000000000000000000000000000002' }],
    ['structured_mode', { 'content-type': 'Application/CloudEvents+json' }],
    ['event', { 'content-type': 'application/json; charset=utf-8' }],
    ['event', { ce_sequence: '3' }],
    ['event', { ce_somebodyelses: Buffer.from([0xff]) }],
    ['unknown_type', { ce_type: 'onefold.operation.planned.v2' }],
    ['unknown_type', { ce_type: '__proto__' }],
  ])('%s for headers like %o', (expected, headers) => {
    expect(reasonOf(withHeaders(headers))).toBe(expected);
  });

  it.each([
    ['no_value', null],
    ['not_json', Buffer.from('{"attempt":')],
    ['not_json', Buffer.alloc(0)],
    ['not_json', Buffer.from([0x22, 0xff, 0x22])],
    ['bad_value', Buffer.from('[]')],
    ['bad_value', Buffer.from('null')],
    ['bad_value', Buffer.from('7')],
  ])('%s for a value like %o', (expected, value) => {
    expect(reasonOf({ ...wire(sample), value })).toBe(expected);
  });

  it('a key that is missing or another one, and no headers at all', () => {
    expect(reasonOf({ ...wire(sample), key: null })).toBe('key_mismatch');
    expect(reasonOf({ ...wire(sample), key: Buffer.from('op_2') })).toBe('key_mismatch');
    expect(reasonOf({ key: null, value: null })).toBe('missing_header');
  });

  it('whatever the bytes are, nothing but a decision or an UnreadableRecord comes out, and no content with it', () => {
    const names = Object.keys(encodeCloudEvent(sample).headers);
    const bytes = fc.uint8Array({ maxLength: 30 }).map((array) => Buffer.from(array));
    const anyHeaders = fc.dictionary(fc.constantFrom(...names), fc.oneof(bytes, fc.array(bytes), fc.constant(Buffer.from('sesame'))));
    fc.assert(
      fc.property(fc.option(bytes), fc.option(bytes), anyHeaders, fc.boolean(), (key, value, headers, isOverlay) => {
        const record = isOverlay ? { ...withHeaders(headers), value } : { key, value, headers };
        try {
          decodeCloudEvent(record);
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableRecord);
          expect((error as Error).message).not.toContain('sesame');
        }
      }),
      { numRuns: 500 },
    );
  });
});
