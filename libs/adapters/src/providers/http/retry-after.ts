/** Milliseconds of a `Retry-After` value, in seconds or as an HTTP date (RFC 9110 section 10.2.3); null where it is neither. */
export function parseRetryAfter(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // `Date.parse` takes much else, such as "-5" or "2"; an HTTP date starts with the name of a day.
  const atMs = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}
