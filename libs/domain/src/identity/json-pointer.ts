/** A member's name, or an array's index. */
export type PointerToken = string | number;

/** RFC 6901 pointer from its unescaped tokens; empty for the whole value. */
export function pointerTo(tokens: readonly PointerToken[]): string {
  return tokens.map((token) => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** The unescaped tokens of an RFC 6901 pointer, or null where the text is none. */
export function pointerTokens(pointer: string): string[] | null {
  if (pointer === '') return [];
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) return null;
  // In this order, so that `~01` gives `~1` (RFC 6901 section 4).
  return pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}
