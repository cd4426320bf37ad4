import { describe, expect, it } from 'vitest';
import { checkIdentity, isRunSpecific, RUN_SPECIFIC_FIELDS } from '#domain';

const business = { workflow_id: 'case-1842', step: 'issue_refund', business_object: 'order-4417', revision: 1 };
const declared = [Object.keys(business)];
const codes = (identity: unknown, alternatives: string[][] = []) =>
  checkIdentity(identity, alternatives).map(({ code, field }) => (field === null ? code : `${code} ${field}`));

describe('identity of a request', () => {
  it('takes 1-8 fields of strings and safe integers', () => {
    expect(codes(business)).toEqual([]);
    expect(codes({ event_id: 'evt:1/2@x_y.z-0', operation: 'a'.repeat(200) })).toEqual([]);
    expect(codes({ a: Number.MAX_SAFE_INTEGER, b: -1, c: 0 })).toEqual([]);
    expect(codes(Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`f${n}`, 1])))).toEqual([]);
    expect(codes({ [`a${'b'.repeat(63)}`]: 1 })).toEqual([]);
  });

  it.each([null, undefined, 'case-1842', 7, true, [], ['case']])('refuses %j, which is no object', (identity) => {
    expect(codes(identity)).toEqual(['identity_not_an_object']);
  });

  it('refuses none and more than eight fields', () => {
    expect(codes({})).toEqual(['identity_empty']);
    expect(codes(Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`f${n}`, 1])))).toEqual(['identity_too_many_fields']);
  });

  it.each(['', 'A', 'workflowId', '1a', '_a', 'a-b', 'a.b', 'ä', `a${'b'.repeat(64)}`, '__proto__'])(
    'refuses the field name %j',
    (name) => {
      expect(codes(JSON.parse(JSON.stringify({ ok: 1 }).replace('ok', name)))).toEqual([`identity_field_name ${name}`]);
    },
  );

  it.each([
    ['', 'an empty string'],
    ['a'.repeat(201), '201 characters'],
    ['a b', 'a space'],
    ['application\u2010731', 'a non-ASCII hyphen (public case 7)'],
    ['a\n', 'a line break'],
    [1.5, 'a fraction'],
    [9007199254740992, 'an unsafe integer'],
    [NaN, 'no number'],
    [true, 'a boolean'],
    [null, 'null'],
    [['a'], 'an array'],
    [{}, 'an object'],
  ])('refuses the value %j: %s', (value, _) => {
    expect(codes({ ok: 'x', field: value })).toEqual(['identity_field_value field']);
  });

  it.each([
    ...['run_id', 'attempt', 'attempt_id', 'timestamp', 'created_at', 'tool_call_id', 'request_id', 'trace_id', 'traceparent'],
    ...['session_id', 'message_id', 'nonce', 'random', 'uuid', 'idempotency_key', 'toolcallid', 'runid'],
  ])('refuses %s, which differs between runs, and says where it belongs', (name) => {
    const [fault, ...rest] = checkIdentity({ ...business, [name]: 'x' }, []);
    expect(rest).toEqual([]);
    expect(fault).toMatchObject({ code: 'identity_field_run_specific', field: name });
    expect(fault!.rule).toContain('put it into source');
  });

  it('knows every run-specific name it lists, and none that is business', () => {
    expect(RUN_SPECIFIC_FIELDS.every(isRunSpecific)).toBe(true);
    const names = ['workflow_id', 'step', 'business_object', 'revision', 'event_id', 'operation', 'payroll_run_id', 'purchase_request_id'];
    expect(names.filter(isRunSpecific)).toEqual([]);
  });

  it('keeps client_key for the header', () => {
    expect(codes({ client_key: 'k-1' })).toEqual(['identity_field_reserved client_key']);
  });

  it('never repeats a value, which may be personal', () => {
    const faults = checkIdentity({ field: 'jane doe <jane@example.test>' }, []);
    expect(JSON.stringify(faults)).not.toContain('jane');
  });

  describe('of an action that declares its fields', () => {
    const alternatives = [...declared, ['event_id', 'operation']];

    it('takes exactly one of the field sets', () => {
      expect(codes(business, alternatives)).toEqual([]);
      expect(codes({ operation: 'refund', event_id: 'e-1' }, alternatives)).toEqual([]);
    });

    it('names what is missing and what is too many, against the closest set', () => {
      expect(codes({ event_id: 'e-1' }, alternatives)).toEqual(['identity_field_missing operation']);
      expect(codes({ ...business, color: 'red' }, alternatives)).toEqual(['identity_field_undeclared color']);
      expect(codes({ workflow_id: 'w', step: 's', business_object: 'o', rev: 1 }, alternatives)).toEqual([
        'identity_field_missing revision',
        'identity_field_undeclared rev',
      ]);
    });

    it('tells each field once, and all fields', () => {
      expect(codes({ ...business, run_id: 'r-77', step: '' }, alternatives)).toEqual([
        'identity_field_value step',
        'identity_field_run_specific run_id',
      ]);
    });
  });
});
