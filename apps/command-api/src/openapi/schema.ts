/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 takes it. */
export type Schema = Readonly<Record<string, unknown>>;

/**
 * An object with exactly the members of `T`, so that a member added to the type is missed here by the compiler. Others may be added in a
 * later version, and a client has to ignore them.
 * @param optional members that may be left out
 */
export function objectOf<T>(properties: { readonly [Name in keyof T]-?: Schema }, optional: readonly (keyof T)[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name as keyof T));
  return { type: 'object', required, properties };
}

/** An object of a request: members it does not name are refused. */
export function requestObject(properties: Readonly<Record<string, Schema>>, required: readonly string[]): Schema {
  return { type: 'object', ...(required.length > 0 && { required }), properties, additionalProperties: false };
}

export function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] };
}

export function arrayOf(items: Schema, bounds: Schema = {}): Schema {
  return { type: 'array', items, ...bounds };
}

/** Refers to a schema of the document. */
export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

export const STRING: Schema = { type: 'string' };
export const BOOLEAN: Schema = { type: 'boolean' };
export const COUNT: Schema = { type: 'integer', minimum: 0 };
/** RFC 3339 section 5.6. */
export const TIME: Schema = { type: 'string', format: 'date-time' };
