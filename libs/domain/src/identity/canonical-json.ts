import { pointerTokens } from './json-pointer.js';
import { isWellFormed, JSON_DEPTH_MAX } from './strict-json.js';

/**
 * The one text of a JSON value (RFC 8785): names in UTF-16 order, numbers as ECMAScript writes them (`1`, `1.0` and `1e0` are equal, `-0`
 * is `0`), no white space, no Unicode normalisation, arrays in their order, null different from absent.
 * @throws TypeError for what is not JSON: undefined, NaN, infinities, lone surrogates, functions, nesting over 32 levels
 */
export function canonicalJson(value: unknown): string {
  return write(value, null, 0);
}

/**
 * As `canonicalJson`, without the members and elements that the RFC 6901 pointers name. A pointer to what is not there changes nothing;
 * the value is not changed.
 * @throws TypeError also for a pointer that is none, and for the empty one: without anything every value would be the same
 */
export function canonicalJsonWithout(value: unknown, pointers: readonly string[]): string {
  return write(value, pointers.length === 0 ? null : omissionOf(pointers), 0);
}

/** What is left out below one value: a name leads on, or to the end of a pointer. */
type Omission = Map<string, Omission | 'all'>;

function omissionOf(pointers: readonly string[]): Omission {
  const root: Omission = new Map();
  for (const pointer of pointers) {
    const tokens = pointerTokens(pointer);
    const last = tokens?.pop();
    if (!tokens || last === undefined) throw new TypeError(`"${pointer}" is no pointer to a member (RFC 6901, for example "/reason").`);
    let at: Omission | 'all' = root;
    for (const token of tokens) {
      const below: Omission | 'all' = at.get(token) ?? new Map();
      at.set(token, below);
      at = below;
      if (at === 'all') break;
    }
    if (at !== 'all') at.set(last, 'all');
  }
  return root;
}

function write(value: unknown, omit: Omission | null, depth: number): string {
  switch (typeof value) {
    case 'string':
      return writeString(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError('A number in JSON is finite.');
      return String(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth === JSON_DEPTH_MAX) throw new TypeError(`Arrays and objects may be nested ${JSON_DEPTH_MAX} deep.`);
      return Array.isArray(value) ? writeArray(value, omit, depth + 1) : writeObject(value as Record<string, unknown>, omit, depth + 1);
    default:
      throw new TypeError(`JSON has no ${typeof value}.`);
  }
}

function writeArray(array: readonly unknown[], omit: Omission | null, depth: number): string {
  let text = '';
  for (let index = 0; index < array.length; index++) {
    const below = omit?.get(String(index)) ?? null;
    if (below === 'all') continue;
    text += (text === '' ? '' : ',') + write(array[index], below, depth);
  }
  return `[${text}]`;
}

function writeObject(object: Readonly<Record<string, unknown>>, omit: Omission | null, depth: number): string {
  let text = '';
  // The default order of `sort` is that of UTF-16 code units, which is the one that section 3.2.3 asks for.
  for (const name of Object.keys(object).sort()) {
    const below = omit?.get(name) ?? null;
    if (below === 'all') continue;
    text += `${text === '' ? '' : ','}${writeString(name)}:${write(object[name], below, depth)}`;
  }
  return `{${text}}`;
}

function writeString(text: string): string {
  if (!isWellFormed(text)) throw new TypeError('A string in JSON is Unicode text, without halves of surrogate pairs.');
  return JSON.stringify(text);
}
