import { describe, expect, it } from 'vitest';
import { createLogger, describeError } from '#adapters/observability/logger.js';

function logged(use: (logger: ReturnType<typeof createLogger>) => void, level: 'info' | 'warn' = 'info'): Record<string, unknown>[] {
  const lines: string[] = [];
  use(createLogger({ process: 'test', level, stream: { write: (line) => void lines.push(line) } }));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('a log line', () => {
  it('is JSON with time, level, process and message', () => {
    const [line] = logged((logger) => logger.info({ operation_id: 'op_1', attempt: 2, position: 7n }, 'attempt started'));
    expect(line).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      process: 'test',
      operation_id: 'op_1',
      attempt: 2,
      position: '7',
      msg: 'attempt started',
    });
  });

  it('drops every field that is not listed, and listed ones that hold more than a short value', () => {
    const [line] = logged((logger) =>
      logger.info({ payload: { to: 'jane@example.test' }, authorization: 'Bearer x', code: { deep: 1 }, status: 'x'.repeat(201) }, 'done'),
    );
    expect(Object.keys(line!).sort()).toEqual(['level', 'msg', 'process', 'time']);
  });

  it('stays below its level', () => {
    expect(logged((logger) => logger.info('quiet'), 'warn')).toEqual([]);
  });
});

describe('an error in the log', () => {
  it('is a name, a code and frames; its message only where that never quotes what it met', () => {
    const quoting = Object.assign(new Error('insert failed for jane@example.test'), { code: '23505', detail: 'jane@example.test' });
    expect(JSON.stringify(describeError(quoting))).not.toContain('jane');
    expect(describeError(quoting)).toMatchObject({
      name: 'Error',
      code: '23505',
      stack: expect.arrayContaining([expect.stringMatching(/^at /)]),
    });
    expect(describeError(new TypeError('x is not a function')).message).toBe('x is not a function');
  });

  it('quotes no JSON that could not be parsed', () => {
    let error: unknown;
    try {
      JSON.parse('{"card": 4111111111111111');
    } catch (caught) {
      error = caught;
    }
    expect(JSON.stringify(describeError(error))).not.toContain('4111');
  });

  it('tells its causes, a few deep', () => {
    const chain = [1, 2, 3, 4, 5, 6].reduce<Error | undefined>((cause, n) => new TypeError(`level ${n}`, { cause }), undefined);
    let depth = 0;
    for (let at: { cause?: unknown } | undefined = describeError(chain); at; at = at.cause as typeof at) depth++;
    expect(depth).toBe(4);
  });

  it('may be no Error at all', () => {
    expect(describeError('text')).toEqual({ name: 'not an Error but string' });
    expect(describeError(null)).toEqual({ name: 'not an Error but null' });
  });
});
