import fc, { type Arbitrary } from 'fast-check';
import { parseStrictJson } from '#domain';
import type { Description, JsonSchema } from './description.js';

/** Values that fit a schema of the description, and the rules for JSON that no schema can say. What it can't build directly is built wider and filtered. */
export function fitting(description: Description, schema: JsonSchema): Arbitrary<unknown> {
  const isStrict = (value: unknown) => parseStrictJson(JSON.stringify(value)).fault === undefined;
  return build(description, schema).filter((value) => isStrict(value) && description.fitsSchema(schema, value));
}

function build(description: Description, schema: JsonSchema): Arbitrary<unknown> {
  const recurse = (inner: JsonSchema) => build(description, inner);
  if (schema.$ref) return recurse(description.document.components.schemas[schema.$ref.split('/').at(-1)]);
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return fc.oneof(...alternatives.map(recurse));
  // The first says what it is, the others only narrow it.
  if (schema.allOf) return fitting(description, schema.allOf[0]).filter((value) => description.fitsSchema(schema, value));
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type: string) => recurse({ ...schema, type })));
  switch (schema.type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: schema.minimum ?? Number.MIN_SAFE_INTEGER, max: schema.maximum ?? Number.MAX_SAFE_INTEGER });
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e15, max: schema.maximum ?? schema.exclusiveMaximum ?? 1e15, noNaN: true });
    case 'string':
      return text(schema);
    case 'array':
      return fc.array(recurse(schema.items), { minLength: schema.minItems ?? 0, maxLength: Math.min(schema.maxItems ?? 5, 5) });
    case 'object':
      return object(schema, recurse);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function text({ format, pattern, minLength = 0, maxLength = 200 }: JsonSchema): Arbitrary<string> {
  if (format === 'date-time') {
    const bounds = { min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z') };
    return fc.date({ ...bounds, noInvalidDate: true }).map((date) => date.toISOString());
  }
  const length = { minLength, maxLength, size: 'medium' as const };
  const free = fc.oneof(
    fc.string({ ...length, unit: 'grapheme' }),
    fc.string({ ...length, unit: 'binary' }),
    atTheEdge(minLength, maxLength),
  );
  if (pattern === undefined) return free;
  return pattern === '\\S' ? free : fc.stringMatching(new RegExp(pattern)).filter((each) => [...each].length <= maxLength);
}

/** As long as may be, also where a character is two code units or changes the look of the one before. */
function atTheEdge(minLength: number, maxLength: number): Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom('x', '\u{1f600}', '\ufe0f', '\u0301', '\u202e'), fc.constantFrom(minLength, maxLength))
    .map(([unit, length]) => unit.repeat(length));
}

function object(schema: JsonSchema, recurse: (schema: JsonSchema) => Arbitrary<unknown>): Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties, propertyNames, minProperties = 0, maxProperties = 6 } = schema;
  if (Object.keys(properties).length > 0) {
    const members = Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, recurse(member)]));
    return fc.record(members, { requiredKeys: required, noNullPrototype: true });
  }
  const names = propertyNames?.pattern
    ? fc.stringMatching(new RegExp(propertyNames.pattern))
    : fc.string({ unit: 'grapheme', maxLength: 12 });
  const values =
    typeof additionalProperties === 'object' ? recurse(additionalProperties) : fc.jsonValue({ maxDepth: 2, stringUnit: 'grapheme' });
  return fc.dictionary(names, values, { minKeys: minProperties, maxKeys: maxProperties, noNullPrototype: true });
}
