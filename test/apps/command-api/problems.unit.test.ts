import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PROBLEMS } from '#apps/command-api/src/problems/catalogue.js';
import { problemOf } from '#apps/command-api/src/problems/problem-of.js';
import { Problem } from '#apps/command-api/src/problems/problem.js';
import { ContentionExceeded, LogOverloaded, LogUnavailable } from '#domain';
import { startApi, type TestApi } from './support/api.js';

describe('docs/errors.md', () => {
  const page = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([a-z0-9_]+)` +\| (\d{3}) +\| (.+?) +\| (.+?) +\|$/gm)];
  const documented = Object.fromEntries(rows.map(([, code, status, title, wayOut]) => [code, { status: Number(status), title, wayOut }]));

  it('lists every code of the catalogue as it is, and no other', () => {
    expect(documented).toEqual(PROBLEMS);
  });

  it('lists each once', () => {
    expect(rows).toHaveLength(Object.keys(documented).length);
  });
});

describe('a problem', () => {
  it('has the members of RFC 9457 and a way out for each error', () => {
    const errors = [{ header: 'If-Match', code: 'if_match_invalid', rule: 'Exactly one ETag.' } as const];
    expect(new Problem('if_match_invalid', { errors, members: { operation_id: 'op_1', status: 'unknown' } }).body()).toEqual({
      type: 'urn:onefold:error:if_match_invalid',
      title: 'If-Match not valid',
      status: 400,
      detail: 'If-Match: Exactly one ETag.',
      code: 'if_match_invalid',
      errors: [{ ...errors[0], way_out: PROBLEMS.if_match_invalid.wayOut }],
      operation_id: 'op_1',
    });
  });

  it.each([
    [new LogUnavailable('x'), 'log_unavailable', 503],
    [new LogOverloaded('x'), 'overloaded', 503],
    [new ContentionExceeded('x'), 'contention', 503],
    [new Error('x'), 'internal_error', 500],
    ['thrown text', 'internal_error', 500],
    [null, 'internal_error', 500],
  ])('is made of %s', (error, code, status) => {
    const problem = problemOf(error);
    expect(problem).toMatchObject({ code, status });
    if (status === 503) expect(problem.headers['retry-after']).toBe('1');
  });
});

describe('an error answer', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  it.each(['/', '/v1', '/v1/nothing', '/v1/operations/op_1/nothing', '/livez/x', '/V1/operations'])(
    'is 404 for the path %s',
    async (path) => {
      const answer = await api.call('GET', path);
      expect(answer.status).toBe(404);
      expect(answer.body).toMatchObject({ code: 'route_not_found', type: 'urn:onefold:error:route_not_found', status: 404 });
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect(answer.headers['x-content-type-options']).toBe('nosniff');
    },
  );

  it.each([
    ['DELETE', '/v1/operations', 'GET, HEAD, POST'],
    ['PUT', '/v1/operations/op_1', 'GET, HEAD'],
    ['GET', '/v1/operations/op_1/cancel', 'POST'],
    ['POST', '/livez', 'GET, HEAD'],
    ['OPTIONS', '/v1/capabilities?x=1', 'GET, HEAD'],
  ])('is 405 for %s %s, and names what is allowed', async (method, path, allow) => {
    const answer = await api.call(method, path);
    expect(answer.status).toBe(405);
    expect(answer.body.code).toBe('method_not_allowed');
    expect(answer.headers.allow).toBe(allow);
  });

  it('is 414 for an id without end', async () => {
    const answer = await api.call('GET', `/v1/operations/${'x'.repeat(200)}`);
    expect(answer.status).toBe(414);
    expect(answer.body.code).toBe('url_too_long');
    expect(answer.headers['content-type']).toBe('application/problem+json');
  });

  it('tells nothing of a fault of ours, and the log tells nothing of the request', async () => {
    const secret = 'account 4417 of Jane';
    const broken = await startApi({
      sealer: {
        ...api.deps.sealer,
        seal: () => {
          throw new Error(`can't seal ${secret}`);
        },
      },
      newId: () => 'id-1',
    });
    const answer = await broken.submit();
    expect(answer.status).toBe(500);
    expect(answer.body).toEqual({
      type: 'urn:onefold:error:internal_error',
      title: PROBLEMS.internal_error.title,
      status: 500,
      detail: PROBLEMS.internal_error.wayOut,
      code: 'internal_error',
      request_id: 'id-1',
    });
    const line = broken.lines.find((candidate) => candidate.includes('request failed'))!;
    expect(JSON.parse(line)).toMatchObject({
      level: 'error',
      request_id: 'id-1',
      route: '/v1/operations',
      method: 'POST',
      err: { name: 'Error' },
    });
    expect(broken.lines.join('')).not.toContain(secret);
    expect(broken.lines.join('')).not.toContain('damaged item');
    await broken.close();
  });

  it('does not fail a batch for one element', async () => {
    let calls = 0;
    const log = Object.assign(Object.create(api.log) as TestApi['log'], {
      append: (request: Parameters<TestApi['log']['append']>[0]) =>
        ++calls === 1 ? Promise.reject(new LogOverloaded('full')) : api.log.append(request),
    });
    const busy = await startApi({ log });
    const body = [1, 2].map((n) => ({ action_type: 'note.write', identity: { workflow_id: `w-${n}` }, payload: {} }));
    const answer = await busy.call('POST', '/v1/operations/batch', { body });
    expect(answer.status).toBe(207);
    expect(answer.body).toMatchObject([{ status: 503, headers: { 'retry-after': '1' }, body: { code: 'overloaded' } }, { status: 202 }]);
    await busy.close();
  });
});
