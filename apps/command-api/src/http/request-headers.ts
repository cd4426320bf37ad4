import type { FastifyRequest } from 'fastify';
import { checkClientKey } from '#domain';
import { Problem } from '../problems/problem.js';

/**
 * The `Idempotency-Key` of a request, null where it has none.
 * @throws Problem idempotency_key_invalid, idempotency_key_repeated: a blank key is never taken for none
 */
export function clientKeyOf(request: FastifyRequest): string | null {
  if (request.headers['idempotency-key'] === undefined) return null;
  const checked = checkClientKey(headerLines(request.raw.rawHeaders, 'idempotency-key'));
  if (!checked.fault) return checked.key;
  const { code, rule } = checked.fault;
  throw new Problem(code, { errors: [{ header: 'Idempotency-Key', code, rule }] });
}

/** Each line of a header apart; Node joins them by commas otherwise. `rawHeaders` alternates names and values. */
function headerLines(rawHeaders: readonly string[], name: string): string[] {
  const lines: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]!.toLowerCase() === name) lines.push(rawHeaders[at + 1]!);
  }
  return lines;
}

/** W3C Trace Context, version 00: one that is not valid is dropped and not passed on (section 3.2.2.3). */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

export function traceparentOf({ headers }: FastifyRequest): string | null {
  const { traceparent } = headers;
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : null;
}
