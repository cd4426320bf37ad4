import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attemptUnknown, KEYS, startApi, startAttempt, SUBMISSION, type Answer, type TestApi } from './support/api.js';

const ROLES = ['agent', 'auditor', 'operator', 'admin'] as const;

/** What contracts.md and the brief allow to whom. */
const MATRIX: readonly { method: string; path: string; body?: unknown; headers?: Record<string, string>; roles: readonly string[] }[] = [
  { method: 'POST', path: '/v1/operations', body: SUBMISSION, roles: ['agent', 'operator', 'admin'] },
  { method: 'POST', path: '/v1/operations/batch', body: [SUBMISSION], roles: ['agent', 'operator', 'admin'] },
  { method: 'GET', path: '/v1/operations', roles: ROLES },
  { method: 'GET', path: '/v1/operations/{id}', roles: ROLES },
  { method: 'HEAD', path: '/v1/operations/{id}', roles: ROLES },
  { method: 'GET', path: '/v1/operations/{id}/events', roles: ROLES },
  { method: 'POST', path: '/v1/operations/{id}/cancel', roles: ['agent', 'operator', 'admin'] },
  { method: 'POST', path: '/v1/operations/{id}/reconcile', roles: ['operator', 'admin'] },
  {
    method: 'POST',
    path: '/v1/operations/{id}/resolve',
    body: { decision: 'give_up', reason: 'nobody can tell' },
    headers: { 'if-match': '"9"' },
    roles: ['operator', 'admin'],
  },
  { method: 'GET', path: '/v1/capabilities', roles: ROLES },
];
const OPEN = ['/livez', '/readyz', '/metrics', '/openapi.json'];

let api: TestApi;
let operationId: string;
beforeAll(async () => {
  api = await startApi();
  operationId = (await api.submit()).body.operation_id;
  await api.apply(operationId, startAttempt(), attemptUnknown());
});
afterAll(() => api.close());

const call = (route: (typeof MATRIX)[number], key: string | null): Promise<Answer> =>
  api.call(route.method, route.path.replace('{id}', operationId), { key, body: route.body, headers: route.headers });

describe('every route for every role', () => {
  for (const route of MATRIX) {
    for (const role of ROLES) {
      const allowed = route.roles.includes(role);
      it(`${route.method} ${route.path} is ${allowed ? 'open to' : 'closed to'} ${role}`, async () => {
        const before = await api.log.head();
        const { status, body } = await call(route, KEYS[role]);
        if (allowed) return expect([401, 403, 404, 405, 500]).not.toContain(status);
        expect(status).toBe(403);
        expect(body.code).toBe('role_not_allowed');
        expect(body.detail).toContain(route.roles.join(', '));
        expect(await api.log.head()).toBe(before);
      });
    }

    it.each([null, 'key-unknown'])(`${route.method} ${route.path} needs a key, not %j`, async (key) => {
      const { status, headers, body } = await call(route, key);
      expect(status).toBe(401);
      expect(headers['www-authenticate']).toMatch(/^Bearer realm="onefold"/);
      if (route.method !== 'HEAD') expect(body.code).toBe(key === null ? 'authentication_required' : 'authentication_invalid');
    });

    if (route.path.includes('{id}')) {
      it(`${route.method} ${route.path} does not show another tenant's operation`, async () => {
        const before = await api.log.head();
        const own = await call(route, KEYS.otherTenant);
        const missing = await api.call(route.method, route.path.replace('{id}', `op_${'f'.repeat(32)}`), {
          key: KEYS.otherTenant,
          body: route.body,
          headers: route.headers,
        });
        expect(own.status).toBe(404);
        expect(own.text).toBe(missing.text);
        expect(await api.log.head()).toBe(before);
      });
    }
  }

  it('there is no other route', () => {
    const routes = api.app.getHttpAdapter().getInstance().printRoutes({ commonPrefix: false });
    const paths = MATRIX.map(({ method, path }) => `${path.split('/').at(-1)!.replace('{id}', ':id')} ${method}`);
    const served = [...routes.matchAll(/(\S+) \(([A-Z, ]+)\)/g)].flatMap(([, path, methods]) =>
      methods!.split(', ').map((method) => `${path!.split('/').at(-1)} ${method}`),
    );
    // HEAD comes with each GET; it is one more method of the same route.
    const declared = new Set([...paths, ...OPEN.map((path) => `${path.slice(1)} GET`)]);
    expect(served.filter((route) => !route.endsWith(' HEAD') && !declared.has(route))).toEqual([]);
    expect(served.filter((route) => !route.endsWith(' HEAD'))).toHaveLength(MATRIX.length - 1 + OPEN.length);
  });
});

describe('what needs no key', () => {
  it.each(OPEN)('%s', async (path) => {
    expect((await api.call('GET', path, { key: null })).status).toBe(200);
  });
});

describe('the Authorization header', () => {
  it.each([
    ['Basic a2V5LXQxLWFnZW50', 401],
    ['Bearer', 401],
    ['Bearer ', 401],
    [`Bearer ${KEYS.agent}x`, 401],
    [`Bearer ${KEYS.agent.toUpperCase()}`, 401],
    [`Bearer ${KEYS.agent}, Bearer ${KEYS.admin}`, 401],
    [`bearer ${KEYS.agent}`, 200],
    [`Bearer  ${KEYS.agent}`, 200],
  ])('%j gives %i', async (authorization, status) => {
    expect((await api.call('GET', '/v1/capabilities', { key: null, headers: { authorization } })).status).toBe(status);
  });

  it('is neither in a log line nor in an answer', async () => {
    const answer = await api.call('GET', '/v1/capabilities', { key: 'key-that-is-wrong' });
    expect(answer.text + api.lines.join('')).not.toContain('key-that-is-wrong');
    expect(api.lines.join('')).not.toContain(KEYS.admin);
  });

  it('is looked at before the body: nobody learns what is valid', async () => {
    const answer = await api.call('POST', '/v1/operations', { key: null, raw: '{' });
    expect(answer.status).toBe(401);
    expect((await api.call('POST', '/v1/operations', { key: KEYS.auditor, raw: '{' })).status).toBe(403);
  });
});
