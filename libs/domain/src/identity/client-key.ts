/** Why an `Idempotency-Key` header is refused. The codes are part of the error catalogue. */
export interface ClientKeyFault {
  readonly code: 'idempotency_key_invalid' | 'idempotency_key_repeated';
  /** The rule and the way out, in words; never the key. */
  readonly rule: string;
}

export type CheckedClientKey = { readonly key: string; readonly fault?: undefined } | { readonly fault: ClientKeyFault };

/** Longest line that can hold a key: 255 characters, all of them escaped, two quotes, and white space around. */
const LINE_LENGTH_MAX = 1024;
const PRINTABLE_ASCII = /^[\x20-\x7e]{1,255}$/;
/** A control character in percent signs: no key of an honest program has one, and something behind us may decode it into a line break. */
const ENCODED_CONTROL = /%(?:[01][0-9a-f]|7f)/i;
/** RFC 9651 section 3.3.3: only the quote and the backslash are escaped. */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/**
 * Reads an `Idempotency-Key` header, bare or quoted (an RFC 9651 string); `k-1` and `"k-1"` are the same key. A key that is no key is
 * refused and never taken for none: a blank one must not lead to an unprotected path.
 * @param raw the header's lines, one string each. Lines joined by a comma can't be told from a comma in a key, so hand them in apart
 * (in Node `headersDistinct` or `rawHeaders`)
 */
export function checkClientKey(raw: string | readonly string[]): CheckedClientKey {
  const lines = typeof raw === 'string' ? [raw] : raw;
  const [line] = lines;
  if (lines.length > 1) return refused('idempotency_key_repeated', 'Send one Idempotency-Key header, not several.');
  if (line === undefined || line.length > LINE_LENGTH_MAX) return checked('');
  // White space around a field value is no part of it (RFC 9110 section 5.5).
  const text = line.replace(/^[ \t]+|[ \t]+$/g, '');
  if (!text.startsWith('"')) return checked(text);
  const quoted = QUOTED.exec(text)?.[1];
  if (quoted === undefined) {
    return refused(
      'idempotency_key_invalid',
      'A quoted Idempotency-Key ends with its quote; inside, only \\" and \\\\ are escaped (RFC 9651).',
    );
  }
  return checked(quoted.replace(/\\(["\\])/g, '$1'));
}

function checked(key: string): CheckedClientKey {
  if (ENCODED_CONTROL.test(key)) {
    return refused('idempotency_key_invalid', 'An Idempotency-Key has no control characters, percent-encoded ones such as %0d included.');
  }
  if (PRINTABLE_ASCII.test(key) && key.trim() !== '') return { key };
  return refused('idempotency_key_invalid', 'An Idempotency-Key has 1-255 printable ASCII characters, not all of them spaces.');
}

function refused(code: ClientKeyFault['code'], rule: string): CheckedClientKey {
  return { fault: { code, rule } };
}
