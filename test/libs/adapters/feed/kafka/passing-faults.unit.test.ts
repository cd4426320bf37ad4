import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { isPassing } from '#adapters/feed/kafka/passing-faults.js';
import { LogOverloaded, LogUnavailable, UnreadableEvent } from '#domain';

/** As the server tells it. Codes: PostgreSQL, Appendix A. */
const answered = (code: string, severity = 'ERROR') => Object.assign(new pg.DatabaseError('said', 4, 'error'), { code, severity });

describe('A failure of a consumer', () => {
  it.each([
    ['the log is away', new LogUnavailable('away')],
    ['too much waits for the log', new LogOverloaded('5000 reads are waiting')],
    ['nothing listens', Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })],
    ['every address of a name refuses', Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' })],
    ['the connection broke', new Error('Connection terminated unexpectedly')],
    ['the pool has no connection in time', new Error('timeout exceeded when trying to connect')],
    ['the answer does not come', new Error('Query read timeout')],
    ['the server shuts down', answered('57P01', 'FATAL')],
    ['the disk is full', answered('53100')],
    ['two writers deadlock', answered('40P01')],
    ['the statement took too long', answered('57014')],
    ['the schema is not there yet', answered('42P01')],
    ['the log is away, told by another error', new Error('The batch failed.', { cause: new LogUnavailable('away') })],
  ])('passes where %s', (_what, error) => {
    expect(isPassing(error)).toBe(true);
  });

  it.each([
    ['code is wrong', new TypeError('x is not a function')],
    ['the database refuses the data', answered('22P05')],
    ['the data break a rule', answered('23514')],
    ['the log says that the data are refused', new LogUnavailable('Reading failed.', { cause: answered('22021') })],
    ['a stored event is damaged', new UnreadableEvent('operation-op_1', 1n)],
    ['something else is thrown', new Error('No.')],
    ['no error is thrown', 'text'],
  ])('stays where %s', (_what, error) => {
    expect(isPassing(error)).toBe(false);
  });
});
