import { dirname, resolve } from 'node:path';
import type { ErrorObject, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { parseStrictJson, pointerTo, pointerTokens, type PayloadViolation } from '#domain';
import { parseYaml, readTextFile } from './read-file.js';
import type { Section } from './section.js';

export interface PayloadSchema {
  readonly schema: object | null;
  readonly validate: (payload: unknown) => readonly PayloadViolation[];
}

/** As many as a caller will mend at once. */
const VIOLATIONS_MAX = 20;

/**
 * Compiles the `payload` of an action: a JSON Schema (draft 2020-12) in a file beside the catalogue, or written out in it; absent, the
 * payload may be any JSON object.
 */
export function readPayloadSchema(action: Section, catalogueFile: string): PayloadSchema {
  const declared = action.value('payload');
  if (declared === undefined) return { schema: null, validate: anyObject };
  const schema = typeof declared === 'string' ? readSchemaFile(action, catalogueFile, declared) : declared;
  if (schema === null) return { schema: null, validate: anyObject };
  if (typeof schema !== 'object' || Array.isArray(schema)) {
    action.fault('payload', 'Must be a file name or a JSON Schema.', 'Write payload: my-action.schema.json.');
    return { schema: null, validate: anyObject };
  }
  return { schema: schema as object, validate: compile(action, schema as object) };
}

function readSchemaFile(action: Section, catalogueFile: string, name: string): unknown {
  const file = resolve(dirname(catalogueFile), name);
  const text = readTextFile(file, action.pathOf('payload'), action.faults);
  if (text === null) return null;
  if (/\.ya?ml$/.test(name)) {
    const faultsBefore = action.faults.count;
    const schema = parseYaml(text, action.faults.below(action.pathOf('payload')));
    return action.faults.count > faultsBefore ? null : schema;
  }
  const parsed = parseStrictJson(text);
  if (parsed.fault === undefined) return parsed.value;
  const at = parsed.fault.pointer === '' ? '' : ` at ${parsed.fault.pointer}`;
  action.fault('payload', `The file ${file} is not usable as JSON${at}: ${parsed.fault.rule}`, 'Correct the file.');
  return null;
}

function compile(action: Section, schema: object): PayloadSchema['validate'] {
  // An instance for each schema: two actions may use the same `$id`.
  const ajv = new Ajv2020({ strict: true, allErrors: true, logger: false });
  addFormats.default(ajv);
  let validate: ValidateFunction;
  try {
    validate = ajv.compile(schema);
  } catch (error) {
    action.fault(
      'payload',
      `Is not a valid JSON Schema: ${(error as Error).message}.`,
      'Correct the schema (draft 2020-12, unknown keywords are refused).',
    );
    return anyObject;
  }
  return (payload) => {
    if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return anyObject(payload);
    return validate(payload) ? NO_VIOLATIONS : (validate.errors ?? []).slice(0, VIOLATIONS_MAX).map(violationOf);
  };
}

const NO_VIOLATIONS: readonly PayloadViolation[] = [];

/** The least that every payload has to be: its members are what paths, mails and hashes refer to. */
function anyObject(payload: unknown): readonly PayloadViolation[] {
  const isObject = typeof payload === 'object' && payload !== null && !Array.isArray(payload);
  return isObject ? NO_VIOLATIONS : [{ pointer: '', rule: 'must be object' }];
}

/** Names the member at fault also where it is the parent that ajv points at. */
function violationOf({ instancePath, keyword, params, message }: ErrorObject): PayloadViolation {
  const member: unknown = params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty;
  const tokens = pointerTokens(instancePath) ?? [];
  const pointer = typeof member === 'string' ? pointerTo([...tokens, member]) : instancePath;
  if (keyword === 'required') return { pointer, rule: 'is required' };
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') return { pointer, rule: 'is not a known member' };
  if (keyword === 'enum')
    return { pointer, rule: `must be one of ${(params.allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(', ')}` };
  return { pointer, rule: message ?? `breaks the rule "${keyword}"` };
}
