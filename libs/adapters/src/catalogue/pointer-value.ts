import type { Pointer } from './settings.js';

/** The value a pointer leads to (RFC 6901); undefined where there is none. Only own members count, never inherited ones. */
export function valueAt(value: unknown, pointer: Pointer): unknown {
  let at = value;
  for (const token of pointer) {
    if (Array.isArray(at)) {
      at = /^(0|[1-9]\d*)$/.test(token) ? at[Number(token)] : undefined;
    } else if (typeof at === 'object' && at !== null && Object.hasOwn(at, token)) {
      at = (at as Record<string, unknown>)[token];
    } else {
      return undefined;
    }
  }
  return at;
}
