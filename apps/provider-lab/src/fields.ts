/** A request the lab cannot take: names the field, the rule it breaks and, where there is a list, what is allowed. */
export class FieldFault extends Error {
  constructor(
    readonly field: string,
    readonly rule: string,
    readonly allowed?: readonly (string | number | boolean | null)[],
  ) {
    super(`${field} ${rule}`);
  }
}

export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object with no other members than the known ones; `field` is its name in the error. */
export function objectOf(value: unknown, field: string, known?: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new FieldFault(field, 'must be a JSON object');
  const unknown = known && Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new FieldFault(field === 'body' ? unknown : `${field}.${unknown}`, 'is not a known field', known);
  }
  return value as Fields;
}

/** An integer within the limits, or the initial value when the member is absent. */
export function integerOf<T>(fields: Fields, field: string, min: number, max: number, initial: T): number | T {
  const value = fields[field];
  if (value === undefined) return initial;
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
    throw new FieldFault(field, `must be an integer from ${min} to ${max}`);
  }
  return value as number;
}

/** A non-empty string of at most `maxLength` characters, or the initial value when the member is absent. */
export function textOf<T>(fields: Fields, field: string, maxLength: number, initial: T): string | T {
  const value = fields[field];
  if (value === undefined) return initial;
  if (typeof value !== 'string' || value.length === 0 || value.length > maxLength) {
    throw new FieldFault(field, `must be a string of 1 to ${maxLength} characters`);
  }
  return value;
}

/** true or false, or the initial value when the member is absent. */
export function flagOf<T>(fields: Fields, field: string, initial: T): boolean | T {
  const value = fields[field];
  if (value === undefined) return initial;
  if (typeof value !== 'boolean') throw new FieldFault(field, 'must be true or false', [true, false]);
  return value;
}

/** One of the allowed words, or the initial value when the member is absent. */
export function wordOf<W extends string, T>(fields: Fields, field: string, allowed: readonly W[], initial: T): W | T {
  const value = fields[field];
  if (value === undefined) return initial;
  if (!allowed.includes(value as W)) throw new FieldFault(field, 'must be one of the allowed values', allowed);
  return value as W;
}
