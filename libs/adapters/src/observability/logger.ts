import { destination, pino, type DestinationStream, type Level, type Logger } from 'pino';

export type { Logger } from 'pino';

export interface LoggerOptions {
  /** Written as `process` on each line, for example `command-api`. */
  readonly process: string;
  readonly level: Level | 'silent';
  /** Where the lines go; standard output when left out. */
  readonly stream?: DestinationStream;
}

/**
 * What a log line may say, and nothing else: a field that is not listed here is dropped, so that no payload, key or address gets into a
 * log by being forgotten in a list of what to hide. Values are short scalars; anything else is dropped as well.
 */
export const LOGGABLE_FIELDS = [
  ...['operation_id', 'action_type', 'provider', 'status', 'attempt', 'attempt_id', 'revision', 'position', 'outcome', 'verdict'],
  ...['code', 'reason_code', 'route', 'method', 'http_status', 'request_id', 'role', 'worker', 'consumer', 'check', 'signal'],
  ...['count', 'duration_ms', 'delay_ms', 'lag_events', 'port', 'version', 'node', 'instance', 'context'],
] as const;

const loggable: ReadonlySet<string> = new Set(LOGGABLE_FIELDS);
/** Longer than any id or code; what exceeds it is free text. */
const VALUE_LENGTH_MAX = 200;

/** JSON lines: `time` (RFC 3339), `level`, `process`, `msg`, the loggable fields, and `err` as `describeError` tells it. */
export function createLogger({ process, level, stream = destination({ dest: 1, sync: true }) }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: { process },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }), log: keepLoggable },
    },
    stream,
  );
}

function keepLoggable(fields: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'err') kept[name] = describeError(value);
    else if (loggable.has(name) && isShortScalar(value)) kept[name] = typeof value === 'bigint' ? String(value) : value;
  }
  return kept;
}

function isShortScalar(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= VALUE_LENGTH_MAX;
  return value === null || ['number', 'boolean', 'bigint'].includes(typeof value);
}

/** Errors whose message is our own text or the engine's about code; others may quote what they failed on (`JSON.parse`, a database's). */
const SPEAKING_ERRORS: ReadonlySet<string> = new Set([
  ...['TypeError', 'RangeError', 'ReferenceError'],
  ...['LogUnavailable', 'LogOverloaded', 'ContentionExceeded', 'UnreadableSeal', 'UnreadableEvent', 'ViewUnavailable'],
  ...['PublishUncertain', 'UnencodableEvent', 'UnreadableRecord', 'LeadershipLost'],
]);
/** Deep enough to find the place, short enough for a log. */
const STACK_FRAMES_MAX = 12;
const CAUSES_MAX = 3;

export interface DescribedError {
  readonly name: string;
  readonly code?: string;
  readonly message?: string;
  readonly stack?: readonly string[];
  readonly cause?: DescribedError;
}

/** An error as a log line may tell it: name, code and stack frames; the message only of kinds that never quote what they met. */
export function describeError(error: unknown, causesLeft = CAUSES_MAX): DescribedError {
  if (!(error instanceof Error)) return { name: `not an Error but ${error === null ? 'null' : typeof error}` };
  const { code } = error as { code?: unknown };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    ...((typeof code === 'string' || typeof code === 'number') && { code: String(code).slice(0, VALUE_LENGTH_MAX) }),
    ...(SPEAKING_ERRORS.has(error.name) && { message: error.message }),
    ...(frames.length > 0 && { stack: frames.slice(0, STACK_FRAMES_MAX).map((frame) => frame.trim()) }),
    ...(error.cause !== undefined && causesLeft > 0 && { cause: describeError(error.cause, causesLeft - 1) }),
  };
}
