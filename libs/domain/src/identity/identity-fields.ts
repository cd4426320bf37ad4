/** Why an identity is refused. The codes are part of the error catalogue. */
export interface IdentityFault {
  readonly code:
    | 'identity_not_an_object'
    | 'identity_empty'
    | 'identity_too_many_fields'
    | 'identity_field_name'
    | 'identity_field_value'
    | 'identity_field_run_specific'
    | 'identity_field_reserved'
    | 'identity_field_missing'
    | 'identity_field_undeclared';
  /** The field at fault; null where it is the whole identity. */
  readonly field: string | null;
  /** The rule and the way out, in words; never the field's value. */
  readonly rule: string;
}

export const IDENTITY_FIELDS_MAX = 8;
/** The identity of a request that names no business fields and only has an `Idempotency-Key` header is this one field. */
export const CLIENT_KEY_FIELD = 'client_key';

const FIELD_NAME = /^[a-z][a-z0-9_]{0,63}$/;
const FIELD_VALUE = /^[A-Za-z0-9._:/@-]{1,200}$/;

/**
 * Names of what differs each time the same business is asked for: with one of them in the identity, a retry would be a new operation
 * and cause a second effect (public case 1). Compared whole and without underscores, so that `runid` is `run_id`; a longer name
 * such as `payroll_run_id` or `purchase_request_id` can be business and passes.
 */
export const RUN_SPECIFIC_FIELDS = [
  // The run and the try.
  ...['run_id', 'workflow_run_id', 'execution_id', 'invocation_id', 'attempt', 'attempt_id', 'attempt_number', 'attempt_count'],
  ...['try', 'retry', 'retries', 'retry_count'],
  // The clock.
  ...['timestamp', 'ts', 'client_ts', 'time', 'datetime', 'now', 'created_at', 'updated_at', 'requested_at', 'submitted_at', 'sent_at'],
  // The model's side of the conversation. `message_id` too: the id of an inbound message is an `event_id`.
  ...['tool_call_id', 'tool_use_id', 'call_id', 'message_id', 'response_id', 'completion_id', 'session_id'],
  // The request and its tracing.
  ...['request_id', 'req_id', 'correlation_id', 'trace_id', 'span_id', 'traceparent', 'tracestate', 'idempotency_key'],
  // Chance, and the machine.
  ...['nonce', 'random', 'rand', 'salt', 'seed', 'uuid', 'guid', 'ulid', 'hostname', 'pid'],
] as const;

const runSpecific: ReadonlySet<string> = new Set(RUN_SPECIFIC_FIELDS.map(withoutUnderscores));

/** Whether a name can't be part of an identity because its value differs between runs. */
export function isRunSpecific(name: string): boolean {
  return runSpecific.has(withoutUnderscores(name));
}

/**
 * Checks the identity of a request: 1-8 fields that name the business intent, the same whenever it is asked for again.
 * @param declared the field sets of which it must have exactly one; none: any fields will do
 * @returns every fault found, in the order of the fields; empty when there is none
 */
export function checkIdentity(identity: unknown, declared: readonly (readonly string[])[]): IdentityFault[] {
  if (typeof identity !== 'object' || identity === null || Array.isArray(identity)) {
    return [
      { code: 'identity_not_an_object', field: null, rule: 'The identity is an object of 1-8 fields that name the business intent.' },
    ];
  }
  const names = Object.keys(identity);
  if (names.length === 0) {
    const rule = 'The identity has at least one field, for example workflow_id; leave it out to use the Idempotency-Key header.';
    return [{ code: 'identity_empty', field: null, rule }];
  }
  if (names.length > IDENTITY_FIELDS_MAX) {
    const rule = `The identity has at most ${IDENTITY_FIELDS_MAX} fields; put the rest into source or payload.`;
    return [{ code: 'identity_too_many_fields', field: null, rule }];
  }
  const faults = names.flatMap((name) => fieldFault(name, (identity as Record<string, unknown>)[name]) ?? []);
  const faulty = new Set(faults.map(({ field }) => field));
  return [...faults, ...declarationFaults(names, declared).filter(({ field }) => !faulty.has(field))];
}

/** The fault in the name of a field, also of one that a catalogue declares; null when there is none. */
export function checkIdentityFieldName(name: string): IdentityFault | null {
  if (!FIELD_NAME.test(name)) {
    const rule = 'A field name begins with a-z and has 1-64 of a-z, 0-9 and _.';
    return { code: 'identity_field_name', field: name, rule };
  }
  if (name === CLIENT_KEY_FIELD) {
    const rule = 'client_key is reserved for the Idempotency-Key header; send the key there, or name the business fields.';
    return { code: 'identity_field_reserved', field: name, rule };
  }
  if (isRunSpecific(name)) {
    const wayOut = name === 'message_id' ? ' Where it is the inbound message that is answered, call it event_id.' : '';
    const rule = `${name} differs between runs, so that a retry would be a new operation; put it into source.${wayOut}`;
    return { code: 'identity_field_run_specific', field: name, rule };
  }
  return null;
}

function fieldFault(name: string, value: unknown): IdentityFault | null {
  const fault = checkIdentityFieldName(name);
  if (fault) return fault;
  if (typeof value === 'string' ? FIELD_VALUE.test(value) : Number.isSafeInteger(value)) return null;
  const rule = 'A field value is a string of 1-200 of A-Z, a-z, 0-9 and . _ : / @ -, or an integer within 9007199254740991 either way.';
  return { code: 'identity_field_value', field: name, rule };
}

function declarationFaults(names: readonly string[], declared: readonly (readonly string[])[]): IdentityFault[] {
  const differences = declared.map((fields) => difference(names, fields));
  // Told against the closest alternative, which is most likely the one that was meant.
  const closest = differences.reduce<Difference | null>((best, each) => (best && best.size <= each.size ? best : each), null);
  if (!closest) return [];
  const expected = declared.map((fields) => fields.join(', ')).join('; or: ');
  return [
    ...closest.missing.map((field): IdentityFault => {
      return { code: 'identity_field_missing', field, rule: `This action's identity has exactly these fields: ${expected}.` };
    }),
    ...closest.undeclared.map((field): IdentityFault => {
      const rule = `This action's identity has exactly these fields: ${expected}. Put ${field} into source or payload.`;
      return { code: 'identity_field_undeclared', field, rule };
    }),
  ];
}

interface Difference {
  readonly missing: readonly string[];
  readonly undeclared: readonly string[];
  readonly size: number;
}

function difference(names: readonly string[], fields: readonly string[]): Difference {
  const missing = fields.filter((field) => !names.includes(field));
  const undeclared = names.filter((name) => !fields.includes(name));
  return { missing, undeclared, size: missing.length + undeclared.length };
}

function withoutUnderscores(name: string): string {
  return name.replaceAll('_', '');
}
