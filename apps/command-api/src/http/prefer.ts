/** Proxies commonly cut idle answers at 30 s; the answer has to be there before. */
export const WAIT_SECONDS_MAX = 25;

/**
 * The seconds that `Prefer: wait=N` (RFC 7240 section 4.3) asks to wait, at most 25; null where it does not, or not in a way that can be
 * honoured: a preference is ignored then, and never an error. `respond-async` beside it is how we answer anyway.
 */
export function waitPreference(prefer: string | readonly string[] | undefined): number | null {
  if (prefer === undefined) return null;
  const text = typeof prefer === 'string' ? prefer : prefer.join(',');
  for (const preference of splitOutsideQuotes(text, ',')) {
    // Parameters after a semicolon say nothing about a wait.
    const [first = ''] = splitOutsideQuotes(preference, ';');
    const [, name, value] = /^\s*([^\s=]+)\s*(?:=\s*(.*?))?\s*$/.exec(first) ?? [];
    // The first one counts (section 2).
    if (name?.toLowerCase() === 'wait') return secondsOf(value);
  }
  return null;
}

function secondsOf(value: string | undefined): number | null {
  const digits = /^"?(\d{1,9})"?$/.exec(value ?? '')?.[1];
  const seconds = digits === undefined ? 0 : Number(digits);
  return seconds >= 1 ? Math.min(seconds, WAIT_SECONDS_MAX) : null;
}

function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    if (quoted && text[at] === '\\') at++;
    else if (text[at] === '"') quoted = !quoted;
    else if (!quoted && text[at] === separator) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, text.slice(start)];
}
