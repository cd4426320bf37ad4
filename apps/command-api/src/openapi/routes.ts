import { OPERATION_STATUSES, SEARCH_TERM_LENGTH_MAX } from '#domain';
import type { Access } from '../http/access.js';
import { WAIT_SECONDS_MAX } from '../http/prefer.js';
import { BATCH_ITEMS_MAX } from '../operations/plan.controller.js';
import { CURSOR_LENGTH_MAX, LIMIT_DEFAULT, LIMIT_MAX } from '../operations/query-parameters.js';
import type { ProblemCode } from '../problems/catalogue.js';
import { arrayOf, nullable, ref, STRING, TIME, type Schema } from './schema.js';

/** One call as the document describes it. */
export interface Route {
  readonly method: 'get' | 'post';
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly access: Access;
  readonly parameters?: readonly Parameter[];
  /** The schema of its JSON body. */
  readonly body?: { readonly schema: Schema; readonly required: boolean };
  readonly answers: Readonly<Record<number, Answer>>;
  /** Codes of its own; those of every call, key and body are added. */
  readonly problems: readonly ProblemCode[];
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  readonly required?: true;
  readonly allowEmptyValue?: true;
  readonly schema: Schema;
}

export interface Answer {
  readonly description: string;
  /** None: it has no body. */
  readonly schema?: Schema;
  readonly mediaType?: string;
  readonly headers?: readonly AnswerHeader[];
}

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

export const ANSWER_HEADERS = {
  ETag: { description: 'The revision of the operation, quoted.', schema: { type: 'string', pattern: '^"[0-9]+"$' } },
  Location: { description: 'Where to ask for the operation.', schema: STRING },
  'Idempotent-Replayed': { description: 'The intent was recorded before.', schema: { const: 'true' } },
  'Preference-Applied': { description: 'The wait that was granted.', schema: STRING },
  Link: { description: 'The next page (RFC 8288).', schema: STRING },
} as const satisfies Record<string, { readonly description: string; readonly schema: Schema }>;

const ID: Parameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'An operation_id.',
  schema: { type: 'string', minLength: 1, maxLength: 100 },
};
const query = (name: string, description: string, schema: Schema): Parameter => ({ name, in: 'query', description, schema });
const header = (name: string, description: string, schema: Schema = STRING): Parameter => ({ name, in: 'header', description, schema });
const term: Schema = { type: 'string', minLength: 1, maxLength: SEARCH_TERM_LENGTH_MAX };

const IDEMPOTENCY_KEY: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[ -~]*[!-~][ -~]*$',
  not: { pattern: '%(?:[01][0-9a-fA-F]|7[fF])' },
};
const TRACEPARENT = header('Traceparent', 'W3C Trace Context; ignored where it is not valid.');

const LOG_FAULTS: readonly ProblemCode[] = ['log_unavailable', 'operation_unreadable'];
const APPEND_FAULTS: readonly ProblemCode[] = [...LOG_FAULTS, 'overloaded', 'contention'];
const ID_FAULTS: readonly ProblemCode[] = ['malformed_url', 'url_too_long', 'operation_not_found'];
const KEY_FAULTS: readonly ProblemCode[] = ['idempotency_key_invalid', 'idempotency_key_repeated'];

const operationAnswer = (description: string, ...headers: AnswerHeader[]): Answer => ({ description, schema: ref('Operation'), headers });

const submitting: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/operations',
    operationId: 'planOperation',
    summary: 'Plans an operation, or attaches to it',
    access: 'submit',
    parameters: [
      header('Idempotency-Key', 'The identity where the body names none; bare or quoted.', IDEMPOTENCY_KEY),
      header('Prefer', `\`wait=N\`, 1-${WAIT_SECONDS_MAX} seconds (RFC 7240).`),
      TRACEPARENT,
    ],
    body: { schema: ref('PlanRequest'), required: true },
    answers: {
      200: operationAnswer('Finished, or of unknown outcome.', 'ETag', 'Location', 'Idempotent-Replayed', 'Preference-Applied'),
      202: operationAnswer('Recorded; more is to come.', 'ETag', 'Location', 'Idempotent-Replayed', 'Preference-Applied'),
    },
    problems: [
      ...(['unknown_action_type', 'payload_invalid', 'identity_required', 'identity_invalid'] as const),
      ...KEY_FAULTS,
      ...(['payload_mismatch', 'action_mismatch', 'identity_unavailable'] as const),
      ...APPEND_FAULTS,
    ],
  },
  {
    method: 'post',
    path: '/v1/operations/batch',
    operationId: 'planOperations',
    summary: `Plans up to ${BATCH_ITEMS_MAX}`,
    access: 'submit',
    parameters: [TRACEPARENT],
    body: { schema: arrayOf(ref('BatchRequestItem'), { minItems: 1, maxItems: BATCH_ITEMS_MAX }), required: true },
    answers: { 207: { description: 'An answer an element, in the same order.', schema: arrayOf(ref('BatchItem')) } },
    problems: [],
  },
];

const reading: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/operations',
    operationId: 'listOperations',
    summary: 'A list, newest first',
    access: 'read',
    parameters: [
      query('status', 'Only of this status.', { type: 'string', enum: OPERATION_STATUSES }),
      query('action_type', 'Only of this action.', term),
      query('workflow_id', 'Only with this workflow_id in the identity.', term),
      query('q', 'An operation id, an identity value or a provider’s id, matched exactly.', term),
      query('cursor', 'The next_cursor of an earlier page with the same filters.', {
        type: 'string',
        minLength: 1,
        maxLength: CURSOR_LENGTH_MAX,
      }),
      query('limit', 'Operations a page.', { type: 'integer', minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT }),
    ],
    answers: { 200: { description: 'A page; it may lag behind by moments.', schema: ref('OperationPage'), headers: ['Link'] } },
    problems: ['query_invalid', 'view_unavailable', ...LOG_FAULTS],
  },
  {
    method: 'get',
    path: '/v1/operations/{id}',
    operationId: 'readOperation',
    summary: 'One operation, folded from its events',
    access: 'read',
    parameters: [ID, header('If-None-Match', 'ETags that are known already.')],
    answers: { 200: operationAnswer('The operation.', 'ETag'), 304: { description: 'As it was.', headers: ['ETag'] } },
    problems: [...ID_FAULTS, ...LOG_FAULTS],
  },
  {
    method: 'get',
    path: '/v1/operations/{id}/events',
    operationId: 'readHistory',
    summary: 'Its events, for audit',
    access: 'read',
    parameters: [ID, query('at', 'Adds the operation as of then.', TIME)],
    answers: { 200: { description: 'The events as they are stored.', schema: ref('OperationHistory') } },
    problems: ['query_invalid', ...ID_FAULTS, ...LOG_FAULTS],
  },
];

const ACT_FAULTS: readonly ProblemCode[] = [...ID_FAULTS, ...APPEND_FAULTS];

const acting: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/operations/{id}/cancel',
    operationId: 'cancelOperation',
    summary: 'Ends it before anything was tried',
    access: 'cancel',
    parameters: [ID, TRACEPARENT],
    body: { schema: ref('ReasonRequest'), required: false },
    answers: { 200: operationAnswer('Cancelled, now or before.', 'ETag') },
    problems: ['not_cancellable', ...ACT_FAULTS],
  },
  {
    method: 'post',
    path: '/v1/operations/{id}/reconcile',
    operationId: 'reconcileOperation',
    summary: 'Asks the provider now',
    access: 'decide',
    parameters: [ID, TRACEPARENT],
    body: { schema: ref('ReasonRequest'), required: false },
    answers: { 202: operationAnswer('The provider will be asked.', 'ETag') },
    problems: ['not_unknown', 'no_lookup', ...ACT_FAULTS],
  },
  {
    method: 'post',
    path: '/v1/operations/{id}/resolve',
    operationId: 'resolveOperation',
    summary: 'Decides a review',
    access: 'decide',
    parameters: [
      ID,
      // Not marked as required: leaving it out is a problem of its own and not a malformed request.
      header('If-Match', 'The ETag of the operation that was looked at; needed.'),
      header('Idempotency-Key', 'Names the decision.', IDEMPOTENCY_KEY),
      TRACEPARENT,
    ],
    body: { schema: ref('ResolveRequest'), required: true },
    answers: { 200: operationAnswer('Decided, now or before.', 'ETag') },
    problems: [
      ...KEY_FAULTS,
      ...(['if_match_required', 'if_match_invalid', 'revision_mismatch'] as const),
      ...(['no_open_review', 'review_already_decided', 'decision_not_allowed'] as const),
      ...ACT_FAULTS,
    ],
  },
];

const probe = (word: string): Schema => ({ type: 'object', required: ['status'], properties: { status: { const: word } } });
const readiness = (word: string): Schema => ({
  type: 'object',
  required: ['status'],
  properties: {
    status: { const: word },
    checks: arrayOf({ type: 'object', required: ['name', 'ok'], properties: { name: STRING, ok: { type: 'boolean' } } }),
  },
});

const system: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/capabilities',
    operationId: 'readCapabilities',
    summary: 'Actions, schemas, rules and limits',
    access: 'read',
    answers: { 200: { description: 'What can be asked for.', schema: ref('Capabilities') } },
    problems: [],
  },
  {
    method: 'get',
    path: '/livez',
    operationId: 'live',
    summary: 'Whether the process answers',
    access: 'open',
    answers: { 200: { description: 'It does.', schema: probe('live') } },
    problems: [],
  },
  {
    method: 'get',
    path: '/readyz',
    operationId: 'ready',
    summary: 'Whether the parts answer that it needs',
    access: 'open',
    parameters: [{ ...query('verbose', 'Names the parts.', STRING), allowEmptyValue: true }],
    answers: {
      200: { description: 'They do.', schema: readiness('ready') },
      503: { description: 'One does not.', schema: readiness('not_ready') },
    },
    problems: [],
  },
  {
    method: 'get',
    path: '/metrics',
    operationId: 'metrics',
    summary: 'Metrics in the Prometheus text format',
    access: 'open',
    answers: { 200: { description: 'The metrics.', schema: STRING, mediaType: 'text/plain' } },
    problems: [],
  },
  {
    method: 'get',
    path: '/openapi.json',
    operationId: 'readDescription',
    summary: 'This document',
    access: 'open',
    answers: { 200: { description: 'OpenAPI 3.1.', schema: { type: 'object', required: ['openapi', 'info', 'paths'] } } },
    problems: [],
  },
];

/** Every call there is. A test holds them against the routes of the running server. */
export const ROUTES: readonly Route[] = [...submitting, ...reading, ...acting, ...system];

const SECONDS: Schema = { type: 'number', minimum: 0 };

/** `GET /v1/capabilities`. */
export const CAPABILITIES: Schema = {
  type: 'object',
  required: ['actions', 'identity', 'payload_hash', 'statuses', 'review_decisions', 'limits'],
  properties: {
    actions: arrayOf({
      type: 'object',
      required: [
        ...['action_type', 'provider', 'risk', 'identity', 'payload_schema', 'presentational'],
        ...['attempts_max', 'on_unknown', 'provider_key_retention_seconds'],
      ],
      properties: {
        action_type: STRING,
        provider: STRING,
        risk: { type: 'string', enum: ['irreversible', 'reversible'] },
        identity: arrayOf(arrayOf(STRING)),
        payload_schema: { type: ['object', 'null'] },
        presentational: arrayOf(STRING),
        attempts_max: { type: 'integer', minimum: 1 },
        on_unknown: arrayOf({ type: 'string', enum: ['lookup', 'same_key_retry', 'review'] }),
        provider_key_retention_seconds: nullable(SECONDS),
      },
    }),
    identity: {
      type: 'object',
      required: ['fields_max', 'never_part_of_it', 'retention', 'key_version'],
      properties: {
        fields_max: { type: 'integer' },
        never_part_of_it: arrayOf(STRING),
        retention: { const: 'unlimited' },
        key_version: STRING,
      },
    },
    payload_hash: { type: 'object', required: ['version', 'rule'], properties: { version: STRING, rule: STRING } },
    statuses: arrayOf(STRING),
    review_decisions: arrayOf(STRING),
    limits: {
      type: 'object',
      required: ['body_bytes', 'batch_items', 'wait_seconds', 'requests_per_second'],
      properties: {
        body_bytes: { type: 'integer' },
        batch_items: { type: 'integer' },
        wait_seconds: { type: 'integer' },
        requests_per_second: nullable({ type: 'number' }),
      },
    },
  },
};
