import {
  OPERATION_STATUSES,
  REVIEW_DECISIONS,
  type EventMetadata,
  type Guidance,
  type OperationResource,
  type ReviewVerdict,
} from '#domain';
import { PROBLEMS } from '../problems/catalogue.js';
import type { ProblemDetail } from '../problems/problem.js';
import type { BatchItem, ParkedRecordResource, ReadOperationResource } from '../operations/answers.js';
import type { EventResource, OperationHistory } from '../operations/read-operation.js';
import { arrayOf, BOOLEAN, COUNT, nullable, objectOf, ref, STRING, TIME, type Schema } from './schema.js';

export const OPERATION_ID: Schema = { type: 'string', pattern: '^op_[0-9a-f]{32}$' };
export const STATUS: Schema = { type: 'string', enum: OPERATION_STATUSES };
const PAYLOAD_HASH: Schema = { type: 'string', pattern: '^hs256-[A-Za-z0-9_-]+:[0-9a-f]{64}$' };

const IDENTITY: Schema = {
  type: 'object',
  minProperties: 1,
  maxProperties: 8,
  additionalProperties: { type: ['string', 'integer'] },
};
const SOURCE: Schema = { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean', 'null'] } };

const guidance = objectOf<Guidance>({
  state: { type: 'string', enum: ['in_progress', 'unconfirmed', 'checking', 'done', 'failed'] satisfies Guidance['state'][] },
  same_identity: { type: 'string', enum: ['attaches', 'stored_result', 'stored_failure'] satisfies Guidance['same_identity'][] },
  new_operation: { enum: [false, 'new_revision'] satisfies Guidance['new_operation'][] },
  retry_after_seconds: nullable({ type: 'integer', minimum: 1 }),
  safe_retry_until: nullable(TIME),
  say: STRING,
});

/** Only where one operation is read. */
const parkedRecord = objectOf<ParkedRecordResource>({
  consumer: STRING,
  topic: STRING,
  partition: COUNT,
  offset: { type: 'string', pattern: '^[0-9]+$' },
  reason: STRING,
  parked_at: TIME,
});

const operation = objectOf<ReadOperationResource>(
  {
    operation_id: OPERATION_ID,
    idempotency_key: STRING,
    tenant: STRING,
    action_type: STRING,
    identity: IDENTITY,
    status: STATUS,
    hold: { type: 'null' },
    review: nullable(
      objectOf<NonNullable<OperationResource['review']>>(
        { open: BOOLEAN, reason: STRING, decision: { type: 'string', enum: REVIEW_DECISIONS } },
        ['decision'],
      ),
    ),
    payload_hash: PAYLOAD_HASH,
    attempt_count: COUNT,
    provider: STRING,
    provider_operation_id: nullable(STRING),
    result: { description: 'What the provider answered, as far as the action keeps it.' },
    result_erased: { const: true, description: 'The data key of the result was destroyed.' },
    last_error: nullable(
      objectOf<NonNullable<OperationResource['last_error']>>({ code: STRING, status: { type: 'integer' }, reason: STRING }, [
        'status',
        'reason',
      ]),
    ),
    evidence: nullable(STRING),
    lease_until: nullable(TIME),
    next_attempt_at: nullable(TIME),
    next_check_at: nullable(TIME),
    safe_retry_until: nullable(TIME),
    source: nullable(SOURCE),
    revision: COUNT,
    created_at: TIME,
    updated_at: TIME,
    guidance: ref('Guidance'),
    parked_records: arrayOf(parkedRecord),
  },
  ['result_erased', 'parked_records'],
);

const event = objectOf<EventResource>({
  id: STRING,
  type: STRING,
  revision: COUNT,
  position: { type: 'string', pattern: '^[0-9]+$' },
  data: { type: 'object', description: 'As stored; sealed parts stay sealed.' },
  metadata: objectOf<EventMetadata>({
    tenant: STRING,
    at: TIME,
    actor: STRING,
    correlation: STRING,
    causation: nullable(STRING),
    traceparent: nullable(STRING),
  }),
  chain: { type: 'string', pattern: '^[0-9a-f]{64}$' },
});

const history = objectOf<OperationHistory>(
  { operation_id: OPERATION_ID, chain_valid: BOOLEAN, events: arrayOf(ref('Event')), at: TIME, as_of: nullable(ref('Operation')) },
  ['at', 'as_of'],
);

const page = objectOf<{ operations: unknown; next_cursor: string | null; has_more: boolean }>({
  operations: arrayOf(ref('Operation')),
  next_cursor: nullable(STRING),
  has_more: BOOLEAN,
});

const CODE: Schema = { type: 'string', enum: Object.keys(PROBLEMS) };

const fault = {
  ...objectOf<ProblemDetail & { readonly way_out: string }>(
    { pointer: STRING, header: STRING, parameter: STRING, code: ref('ProblemCode'), rule: STRING, way_out: STRING },
    ['pointer', 'header', 'parameter'],
  ),
  description: 'One fault, at exactly one of `pointer` (RFC 6901, into the body), `header` or `parameter`.',
  oneOf: [{ required: ['pointer'] }, { required: ['header'] }, { required: ['parameter'] }],
};

/** `decision_id` and the like of the decision that won. */
const winner = objectOf<Record<'decision' | 'decision_id' | 'actor' | 'reason' | 'decided_at', unknown>>({
  decision: { type: 'string', enum: REVIEW_DECISIONS satisfies readonly ReviewVerdict['decision'][] },
  decision_id: nullable(STRING),
  actor: STRING,
  reason: STRING,
  decided_at: TIME,
});

const problem: Schema = {
  type: 'object',
  description: 'RFC 9457. `code` is stable; `docs/errors.md` says what to do about each.',
  required: ['type', 'title', 'status', 'detail', 'code'],
  properties: {
    type: { type: 'string', pattern: '^urn:onefold:error:[a-z0-9_]+$' },
    title: STRING,
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: STRING,
    code: ref('ProblemCode'),
    errors: arrayOf(ref('Fault'), { minItems: 1 }),
    operation_id: OPERATION_ID,
    operation_status: STATUS,
    guidance: ref('Guidance'),
    stored_payload_hash: PAYLOAD_HASH,
    submitted_payload_hash: PAYLOAD_HASH,
    winner,
    revision: COUNT,
    request_id: STRING,
  },
};

const batchItem = objectOf<BatchItem>({
  status: { type: 'integer', minimum: 200, maximum: 599 },
  headers: { type: 'object', additionalProperties: STRING },
  body: { anyOf: [ref('Operation'), ref('Problem')] },
});

/** What answers are made of. */
export const ANSWER_SCHEMAS: Readonly<Record<string, Schema>> = {
  Operation: operation,
  Guidance: guidance,
  OperationPage: page,
  OperationHistory: history,
  Event: event,
  BatchItem: batchItem,
  Problem: problem,
  ProblemCode: CODE,
  Fault: fault,
};
