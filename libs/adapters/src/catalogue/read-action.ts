import { CLIENT_KEY_FIELD, IDENTITY_FIELDS_MAX, isRunSpecific, pointerTokens, type OperationPolicy } from '#domain';
import { didYouMean } from '../configuration/did-you-mean.js';
import { readPayloadSchema, type PayloadSchema } from './payload-schema.js';
import { readActionRequest } from './read-action-request.js';
import { readPolicy } from './read-policy.js';
import type { ReadProvider } from './read-provider.js';
import type { Section } from './section.js';
import type { LoadedAction } from './settings.js';

const ACTION_TYPE = /^(?=.{1,100}$)[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*$/;
const IDENTITY_FIELD = /^[a-z][a-z0-9_]{0,63}$/;

/** Reads one action. `providers` holds null for a provider that is there but unreadable: its own faults are enough. */
export function readAction(
  actionType: string,
  section: Section,
  providers: ReadonlyMap<string, ReadProvider | null>,
  catalogueFile: string,
): LoadedAction | null {
  if (!ACTION_TYPE.test(actionType)) {
    section.faults.add(
      section.path,
      'The name is not allowed.',
      'Use words of a-z, 0-9 and _ joined by dots, for example payment_order.create.',
    );
  }
  section.notAvailable('approval');
  const providerName = section.requiredText('provider', 'provider: payments');
  const provider = providers.get(providerName);
  if (providerName !== '' && provider === undefined) {
    section.fault('provider', 'No such provider is declared.', didYouMean(providerName, [...providers.keys()]));
  }
  const risk = section.word('risk', ['irreversible', 'reversible'], 'irreversible');
  const identity = readIdentity(section);
  const schema = readPayloadSchema(section, catalogueFile);
  const presentational = readPresentational(section, schema);
  if (!provider) return null;
  const policy: OperationPolicy = readPolicy(section, risk, provider);
  const request = readActionRequest(section, provider.settings.kind);
  section.end();
  return {
    actionType,
    provider: providerName,
    risk,
    identity,
    payloadSchema: schema.schema,
    presentational,
    policy,
    validatePayload: schema.validate,
    request,
  };
}

/** One list of field names, or a list of such lists of which an identity must be exactly one. */
function readIdentity(section: Section): readonly (readonly string[])[] {
  const declared = section.list('identity');
  if (declared === null) return [];
  const alternatives = declared.some(Array.isArray) ? declared : [declared];
  return alternatives.map((fields) => {
    if (!Array.isArray(fields)) {
      section.fault(
        'identity',
        'Mixes field names and lists of them.',
        'Write one list of names, or only lists: [[workflow_id, step], [event_id, operation]].',
      );
      return [];
    }
    checkIdentityFields(section, fields);
    return fields.filter((field) => typeof field === 'string');
  });
}

function checkIdentityFields(section: Section, fields: readonly unknown[]): void {
  if (fields.length < 1 || fields.length > IDENTITY_FIELDS_MAX) {
    section.fault(
      'identity',
      `Must have 1 to ${IDENTITY_FIELDS_MAX} fields.`,
      'Name what makes the business intent one, for example [workflow_id, step].',
    );
  }
  fields.forEach((field, index) => {
    if (typeof field !== 'string' || !IDENTITY_FIELD.test(field)) {
      section.fault('identity', `Field ${index + 1} is not a field name.`, 'Use up to 64 of a-z, 0-9 and _, a letter first.');
    } else if (fields.indexOf(field) !== index) {
      section.fault('identity', `The field "${field}" is there twice.`, 'Keep one of the two.');
    } else if (isRunSpecific(field) || field === CLIENT_KEY_FIELD) {
      section.fault(
        'identity',
        `The field "${field}" can't be part of an identity.`,
        'Use fields that are the same each time the same business is asked for.',
      );
    }
  });
}

function readPresentational(section: Section, { schema }: PayloadSchema): readonly string[] {
  const known = memberNames(schema);
  return (section.list('presentational') ?? []).filter((pointer): pointer is string => {
    const tokens = typeof pointer === 'string' ? pointerTokens(pointer) : null;
    if (tokens === null || tokens.length === 0) {
      section.fault('presentational', 'Must be a list of JSON pointers (RFC 6901) to members of the payload.', 'Write [/reason].');
      return false;
    }
    // A slip here would silently make the wording part of the business.
    if (known !== null && !known.includes(tokens[0]!)) {
      section.fault('presentational', `The payload's schema has no member "${tokens[0]}".`, didYouMean(tokens[0]!, known));
      return false;
    }
    return true;
  });
}

/** Top-level member names, where the schema is closed so that there can be no others. */
function memberNames(schema: object | null): readonly string[] | null {
  if (schema === null || !('properties' in schema) || !('additionalProperties' in schema) || schema.additionalProperties !== false)
    return null;
  return Object.keys(schema.properties as object);
}
