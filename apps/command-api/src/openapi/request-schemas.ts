import {
  CLIENT_KEY_FIELD,
  IDENTITY_FIELDS_MAX,
  REVIEW_DECISIONS,
  RUN_SPECIFIC_FIELDS,
  type ActionDefinition,
  type Catalogue,
} from '#domain';
import { NAME_LENGTH_MAX, REASON_LENGTH_MAX, SOURCE_MEMBERS_MAX, SOURCE_STRING_MAX } from '../operations/bodies.js';
import { nullable, ref, requestObject, type Schema } from './schema.js';

const TEXT_NOT_BLANK: Schema = { type: 'string', minLength: 1, maxLength: REASON_LENGTH_MAX, pattern: '\\S' };

const IDENTITY_VALUE: Schema = {
  anyOf: [
    { type: 'string', pattern: '^[A-Za-z0-9._:/@-]{1,200}$' },
    { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
  ],
};

/** Names are compared without underscores: any number of them may stand between the letters. */
const NEVER_A_FIELD = [
  ...new Set([CLIENT_KEY_FIELD, ...RUN_SPECIFIC_FIELDS.map((name) => [...name.replaceAll('_', '')].join('_*') + '_*')]),
];

/** What an action without declared fields takes. */
const ANY_IDENTITY: Schema = {
  type: 'object',
  description: `1-${IDENTITY_FIELDS_MAX} fields that name the business intent; none that differs between runs (GET /v1/capabilities lists these).`,
  minProperties: 1,
  maxProperties: IDENTITY_FIELDS_MAX,
  propertyNames: { pattern: '^[a-z][a-z0-9_]{0,63}$', not: { pattern: `^(?:${NEVER_A_FIELD.join('|')})$` } },
  additionalProperties: IDENTITY_VALUE,
};

const SOURCE: Schema = {
  type: 'object',
  maxProperties: SOURCE_MEMBERS_MAX,
  additionalProperties: {
    anyOf: [{ type: 'string', maxLength: SOURCE_STRING_MAX }, { type: 'number' }, { type: 'boolean' }, { type: 'null' }],
  },
};

const REASON_REQUEST = requestObject({ reason: nullable(TEXT_NOT_BLANK) }, []);

const RESOLVE_REQUEST = requestObject(
  {
    decision: { type: 'string', enum: REVIEW_DECISIONS },
    reason: TEXT_NOT_BLANK,
    provider_operation_id: nullable({ type: 'string', minLength: 1, maxLength: NAME_LENGTH_MAX }),
    evidence: nullable({ type: 'string', minLength: 1, maxLength: REASON_LENGTH_MAX }),
  },
  ['decision', 'reason'],
);

/** What bodies of requests are made of: one schema an action, since each has fields and a payload of its own. */
export function requestSchemas({ actions }: Catalogue): Record<string, Schema> {
  const byAction = [...actions.values()];
  return {
    ReasonRequest: REASON_REQUEST,
    ResolveRequest: RESOLVE_REQUEST,
    Source: SOURCE,
    PlanRequest: { anyOf: byAction.map(({ actionType }) => ref(`Plan.${actionType}`)) },
    BatchRequestItem: { allOf: [ref('PlanRequest'), { required: ['identity'] }] },
    ...Object.fromEntries(byAction.map((action) => [`Plan.${action.actionType}`, planSchema(action)])),
    ...Object.fromEntries(byAction.map((action) => [`Payload.${action.actionType}`, payloadSchema(action)])),
  };
}

function planSchema({ actionType, identity }: ActionDefinition): Schema {
  return requestObject(
    {
      action_type: { const: actionType },
      identity: identity.length === 0 ? ANY_IDENTITY : { oneOf: identity.map(declaredIdentity) },
      payload: { allOf: [ref(`Payload.${actionType}`), { type: 'object' }] },
      source: nullable(ref('Source')),
    },
    ['action_type', 'payload'],
  );
}

function declaredIdentity(fields: readonly string[]): Schema {
  return requestObject(Object.fromEntries(fields.map((field) => [field, IDENTITY_VALUE])), fields);
}

/** The schema as the catalogue has it, under an id of its own: two actions may share a file, and a `#` in it means the file's root. */
function payloadSchema({ actionType, payloadSchema: declared }: ActionDefinition): Schema {
  if (declared === null) return { type: 'object' };
  const $id = `urn:onefold:payload:${actionType}`;
  const { $id: earlier, $schema: _, ...schema } = declared as Schema;
  return { $id, ...(typeof earlier === 'string' ? (redirected(schema, earlier, $id) as Schema) : schema) };
}

/** References that spell out the earlier id follow it. */
function redirected(value: unknown, from: string, to: string): unknown {
  if (Array.isArray(value)) return value.map((each) => redirected(each, from, to));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const refersToIt = name === '$ref' && typeof member === 'string' && member.split('#', 1)[0] === from;
      return [name, refersToIt ? to + member.slice(from.length) : redirected(member, from, to)];
    }),
  );
}
