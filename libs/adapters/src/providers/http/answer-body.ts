import type { KeptMember, Pointer } from '../../catalogue/settings.js';
import { valueAt } from '../../catalogue/pointer-value.js';

/** Longer ids are no ids. */
const ID_LENGTH_MAX = 1_000;

/** The JSON value of an answer's body; undefined where it is none, also where the body is empty. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The provider's id for the effect, as text; null where there is none that can be relied on. */
export function idAt(value: unknown, pointer: Pointer): string | null {
  const id = valueAt(value, pointer);
  if (typeof id === 'string' && id !== '' && id.length <= ID_LENGTH_MAX) return id;
  // A larger integer has lost digits already.
  return Number.isSafeInteger(id) ? String(id) : null;
}

/** The members that the action keeps; null where there are none to keep. */
export function keptMembers(value: unknown, keep: readonly KeptMember[]): Record<string, unknown> | null {
  if (keep.length === 0) return null;
  const kept = keep.map(({ name, pointer }) => [name, valueAt(value, pointer)] as const);
  return Object.fromEntries(kept.filter(([, member]) => member !== undefined));
}
