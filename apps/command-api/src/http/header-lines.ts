import type { IncomingMessage } from 'node:http';
import { Problem } from '../problems/problem.js';
import type { ProblemCode } from '../problems/catalogue.js';
import { HEADERS_MAX } from './server-options.js';

/** Headers of which Node takes the first line and drops the others: whoever stands before us may have gone by another one. */
const ONCE: Readonly<Record<string, ProblemCode>> = {
  host: 'malformed_request',
  authorization: 'authentication_invalid',
  'content-type': 'unsupported_media_type',
};

/**
 * Refuses a request whose header lines can be read in two ways: too many, so that Node has dropped some; one of its own kind repeated; no
 * host in HTTP/1.1 (RFC 9112 section 3.2).
 * @throws Problem headers_too_large, malformed_request, authentication_invalid, unsupported_media_type
 */
export function checkHeaderLines({ rawHeaders, headers, httpVersion }: IncomingMessage): void {
  // Names and values alternate.
  if (rawHeaders.length > 2 * HEADERS_MAX) {
    throw new Problem('headers_too_large', { detail: `A request has at most ${HEADERS_MAX} headers.` });
  }
  if (headers.host === undefined && httpVersion === '1.1')
    throw new Problem('malformed_request', { detail: 'The Host header is missing.' });
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    const code = Object.hasOwn(ONCE, name) ? ONCE[name] : undefined;
    if (code === undefined) continue;
    if (seen.has(name)) throw new Problem(code, { errors: [{ header: name, code, rule: 'This header is sent once.' }] });
    seen.add(name);
  }
}
