import pg from 'pg';
import { LogUnavailable } from '#domain';

/** `int8` arrives as text: positions are bigint, millisecond times fit a number and are converted where they are read. */
export type Pool = pg.Pool;
export type PoolClient = pg.PoolClient;

export interface DatabaseOptions {
  readonly url: string;
  /** Connections of this process besides the log's own one for appends. */
  readonly poolSize?: number;
  readonly applicationName?: string;
  /** False: commits need not wait for the disk. Only for what is rebuilt from the log. */
  readonly durable?: boolean;
  /** Called when an idle connection breaks; the pool replaces it by itself. */
  readonly onIdleError?: (error: Error) => void;
}

/** Two cores rarely serve more statements at once; waiting in the pool costs less than waiting in the database. */
const POOL_SIZE = 8;
/** A statement of ours takes milliseconds; one that takes this long is stuck and must not hold its caller for ever. */
const STATEMENT_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** The server ends a statement by itself; an answer that is still missing after that was lost on the way. */
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 5_000;

export function connectionSettings({ url, applicationName = 'onefold', durable = true }: DatabaseOptions): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    keepAlive: true,
    // What an append sees behind its lock must not depend on how the operator has set the database up.
    options: `-c default_transaction_isolation=read\\ committed${durable ? '' : ' -c synchronous_commit=off'}`,
  };
}

export function openPool(options: DatabaseOptions): Pool {
  const pool = new pg.Pool({ ...connectionSettings(options), max: options.poolSize ?? POOL_SIZE });
  pool.on('error', (error) => options.onIdleError?.(error));
  // A connection that breaks while it is handed out is met at its next statement; told as an event that nobody listens to, it would
  // end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/**
 * SQLSTATE classes after which the connection, not the statement, is at fault: 08 connection exception, 57P operator intervention,
 * 25P03 and 25P04 the time limits that end a session. What was committed is then not known.
 */
const CONNECTION_FAULT = /^(08|57P|25P0[34])/;
/** The severities that end the session whatever the code; the server may translate them, so that the codes count as well. */
const ENDS_SESSION = new Set(['FATAL', 'PANIC']);
/** SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation): the same data will be refused again. */
const REFUSED_DATA = /^2[23]/;

export function isConnectionFault(error: unknown): boolean {
  const { code, severity } = error as { code?: string; severity?: string };
  // An error with a severity was said by the server; without one it came from the socket or the driver.
  return severity === undefined || ENDS_SESSION.has(severity) || CONNECTION_FAULT.test(code ?? '');
}

export function isRefusedData(error: unknown): boolean {
  const { code, severity } = error as { code?: string; severity?: string };
  return severity !== undefined && REFUSED_DATA.test(code ?? '');
}

/** Reads never guess: whatever keeps them from an answer is told as `LogUnavailable`. */
export async function orUnavailable<T>(what: string, read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    throw new LogUnavailable(`${what} failed.`, { cause: error });
  }
}
