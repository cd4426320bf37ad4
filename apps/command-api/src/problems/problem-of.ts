import { HttpException } from '@nestjs/common';
import { ContentionExceeded, LogOverloaded, LogUnavailable, UnreadableEvent } from '#domain';
import type { ProblemCode } from './catalogue.js';
import { Problem } from './problem.js';

/** No identity could be made: without one nothing keeps a repetition apart from a second intent, so that nothing is recorded. */
export class IdentityUnavailable extends Error {
  override readonly name = 'IdentityUnavailable';
}

/** The status view did not answer; single operations can still be read. */
export class ViewUnavailable extends Error {
  override readonly name = 'ViewUnavailable';
}

/** Long enough for a full queue of appends to drain, short enough that an agent stays with the same request. */
const RETRY_AFTER = { 'retry-after': '1' };

/** Faults that Fastify itself finds, before any of our code runs. */
const FASTIFY_FAULTS: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'body_incomplete',
  FST_ERR_BAD_URL: 'malformed_url',
  FST_ERR_MAX_PARAM_LENGTH: 'url_too_long',
  FST_ERR_ROUTE_MAX_PARAM_LENGTH: 'url_too_long',
  // The client went away while it was sending; nobody reads this answer.
  ECONNRESET: 'body_incomplete',
};

/** What to answer to an error; whatever is not known here becomes `internal_error`, without a word about it. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof LogUnavailable) return new Problem('log_unavailable', { headers: RETRY_AFTER });
  if (error instanceof IdentityUnavailable) return new Problem('identity_unavailable', { headers: RETRY_AFTER });
  if (error instanceof UnreadableEvent) return new Problem('operation_unreadable');
  if (error instanceof LogOverloaded) return new Problem('overloaded', { headers: RETRY_AFTER });
  if (error instanceof ContentionExceeded) return new Problem('contention', { headers: RETRY_AFTER });
  if (error instanceof ViewUnavailable) return new Problem('view_unavailable', { headers: RETRY_AFTER });
  const known = FASTIFY_FAULTS[codeOf(error) ?? (error instanceof Error ? (codeOf(error.cause) ?? '') : '')];
  if (known) return new Problem(known);
  if (error instanceof HttpException) return fromHttpException(error);
  return new Problem('internal_error');
}

function fromHttpException(error: HttpException): Problem {
  const status = error.getStatus();
  if (status === 404) return new Problem('route_not_found');
  return new Problem(status < 500 ? 'malformed_request' : 'internal_error');
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
