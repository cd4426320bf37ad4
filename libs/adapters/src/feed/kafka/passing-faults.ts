import { LogOverloaded, LogUnavailable } from '#domain';
import { isRefusedData } from '../../postgres/database.js';

/** What the driver itself throws: plain errors without a code (pg 8.23: client.js, query.js; pg-pool). */
const DRIVER_MESSAGES = [
  /^Connection terminated/,
  /^Client (was closed and is not queryable|has encountered a connection error and is not queryable)/,
  /^timeout exceeded when trying to connect$/,
  /^timeout expired$/,
  /^Query read timeout$/,
];
const SOCKET_CODE = /^E[A-Z]{3,}/;
const CAUSES_MAX = 5;

/**
 * Whether a failure says nothing about the events that were handed over: the log or the database is away, full or not set up, and the same
 * events will be taken once it is well again. Only data that the database refuses (SQLSTATE 22 and 23) are the events' own fault; whatever
 * else it answers is its own.
 */
export function isPassing(error: unknown): boolean {
  const causes = causesOf(error);
  if (causes.some(isRefusedData)) return false;
  return causes.some((cause) => {
    if (cause instanceof LogUnavailable || cause instanceof LogOverloaded) return true;
    const { severity, code, message } = cause;
    if (severity !== undefined || (typeof code === 'string' && SOCKET_CODE.test(code))) return true;
    return DRIVER_MESSAGES.some((form) => form.test(message));
  });
}

type CodedError = Error & { readonly severity?: string; readonly code?: unknown };

function causesOf(error: unknown): CodedError[] {
  const causes: CodedError[] = [];
  for (let next = error; next instanceof Error && causes.length < CAUSES_MAX; next = next.cause) causes.push(next as CodedError);
  return causes;
}
