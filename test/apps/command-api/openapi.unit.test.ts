import { randomUUID } from 'node:crypto';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDocument, UNMATCHED_CODES } from '#apps/command-api/src/openapi/document.js';
import { RouteTable } from '#apps/command-api/src/http/route-table.js';
import { PROBLEMS } from '#apps/command-api/src/problems/catalogue.js';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import { LogUnavailable, OPERATION_STATUSES, REVIEW_DECISIONS, type ActionDefinition, type Catalogue } from '#domain';
import { Description, type JsonSchema } from '../../hostile-input/support/description.js';
import {
  attemptSucceeded,
  attemptUnknown,
  KEYS,
  startApi,
  startAttempt,
  SUBMISSION,
  type Answer,
  type Call,
  type TestApi,
} from './support/api.js';

let api: TestApi;
let document: JsonSchema;
let description: Description;
beforeAll(async () => {
  api = await startApi({ readiness: [{ name: 'log', check: async () => undefined }] });
  document = (await api.call('GET', '/openapi.json', { key: null })).body;
  description = new Description(document);
});
afterAll(() => api.close());

/** Calls, and holds the answer against the description. */
async function described(method: string, url: string, call: Call = {}): Promise<Answer> {
  const answer = await api.call(method, url, call);
  expect(description.faultOf(method, url, answer)).toBeNull();
  return answer;
}

describe('the description', () => {
  it('is OpenAPI 3.1, open to everybody', async () => {
    const answer = await api.call('GET', '/openapi.json', { key: null });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
  });

  it('has each route of the server and no other', async () => {
    const served = new Map<string, string[]>();
    const add = RouteTable.prototype.add;
    RouteTable.prototype.add = function (path, methods) {
      served.set(path, [...(served.get(path) ?? []), ...methods]);
      add.call(this, path, methods);
    };
    try {
      await (await startApi()).close();
    } finally {
      RouteTable.prototype.add = add;
    }
    const real = [...served].flatMap(([path, methods]) => methods.map((method) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`));
    const written = description.routes.map(({ method, path }) => `${method} ${path}`);
    // HEAD comes with each GET (RFC 9110 section 9.3.2) and is not written down.
    expect(real.filter((route) => !route.startsWith('HEAD ')).sort()).toEqual([...written].sort());
    expect(
      real
        .filter((route) => route.startsWith('HEAD '))
        .map((route) => route.replace('HEAD', 'GET'))
        .sort(),
    ).toEqual(written.filter((route) => route.startsWith('GET ')).sort());
  });

  it('names each call once, its path parameters, and only schemas that exist', () => {
    const names = description.routes.map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { path, parameters, operation } of description.routes) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)).toEqual(inPath);
      for (const response of Object.values<JsonSchema>(operation.responses)) expect(response.description).toBeTruthy();
    }
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name!);
    expect(references.length).toBeGreaterThan(20);
    for (const name of references) expect(document.components.schemas).toHaveProperty([name]);
    for (const name of Object.keys(document.components.schemas)) expect(name).toMatch(/^[A-Za-z0-9._-]+$/);
  });

  it('knows the codes, statuses and decisions of the code', () => {
    const { schemas } = document.components;
    expect(schemas.ProblemCode.enum).toEqual(Object.keys(PROBLEMS));
    expect(schemas.Operation.properties.status.enum).toEqual(OPERATION_STATUSES);
    expect(schemas.ResolveRequest.properties.decision.enum).toEqual(REVIEW_DECISIONS);
  });

  it('has an answer for each code that is not only part of another', () => {
    const named = new Set<string>(UNMATCHED_CODES);
    for (const { operation } of description.routes) {
      for (const [status, response] of Object.entries<JsonSchema>(operation.responses)) {
        const codes: string[] = response.content?.['application/problem+json']?.schema.allOf[1].properties.code.enum ?? [];
        for (const code of codes) {
          expect(String(PROBLEMS[code as keyof typeof PROBLEMS].status)).toBe(status);
          named.add(code);
        }
      }
    }
    const nested = /^(member_|parameter_|payload_violation|identity_(?!required|invalid))/;
    expect(Object.keys(PROBLEMS).filter((code) => !named.has(code) && !nested.test(code))).toEqual([]);
  });

  it('has each action of the catalogue with its own payload schema', () => {
    const { schemas } = document.components;
    expect(schemas.PlanRequest.anyOf).toHaveLength(api.deps.catalogue.actions.size);
    expect(schemas['Payload.refund.create']).toMatchObject({ required: ['order_id', 'amount_minor', 'currency'] });
    expect(description.fits('PlanRequest', SUBMISSION)).toBe(true);
    expect(description.fits('PlanRequest', { ...SUBMISSION, payload: { ...SUBMISSION.payload, amount_minor: '1' } })).toBe(false);
  });

  it('keeps the references of a schema in it, also of one that two actions share', () => {
    const shared = {
      $id: 'urn:x',
      $defs: { money: { type: 'integer' } },
      type: 'object',
      properties: { a: { $ref: '#/$defs/money' }, b: { $ref: 'urn:x#/$defs/money' } },
    };
    const actions = ['one.do', 'two.do'].map((actionType): [string, ActionDefinition] => [
      actionType,
      { ...api.deps.catalogue.actions.get('note.write')!, actionType, payloadSchema: shared },
    ]);
    const catalogue: Catalogue = { providers: new Map(), actions: new Map(actions) };
    const shortened = new Description(JSON.parse(JSON.stringify(buildDocument(catalogue))));
    for (const [actionType] of actions) {
      const submission = (payload: object) => ({ action_type: actionType, payload });
      expect(shortened.fits('PlanRequest', submission({ a: 1, b: 2 }))).toBe(true);
      expect(shortened.fits('PlanRequest', submission({ a: 'x' }))).toBe(false);
      expect(shortened.fits('PlanRequest', submission({ b: 'x' }))).toBe(false);
    }
  });

  it('can be made of the shipped catalogue', { timeout: 30_000 }, () => {
    const file = new URL('../../../onefold.yaml', import.meta.url).pathname;
    const shipped = loadCatalogue(file, { LAB_URL: 'http://127.0.0.1:1', SMTP_URL: 'smtp://127.0.0.1:1' });
    const made = new Description(JSON.parse(JSON.stringify(buildDocument(shipped))));
    for (const actionType of shipped.actions.keys()) expect(made.fits(`Plan.${actionType}`, { action_type: actionType })).toBe(false);
  });

  it('has schemas that are schemas', () => {
    const ajv = new Ajv2020({ strict: false });
    for (const schema of Object.values<JsonSchema>(document.components.schemas)) expect(ajv.validateSchema(schema)).toBe(true);
  });
});

describe('real answers', () => {
  it('of submitting fit', async () => {
    const first = await described('POST', '/v1/operations', { body: SUBMISSION });
    expect(first.status).toBe(202);
    await described('POST', '/v1/operations', { body: SUBMISSION });
    const mismatch = await described('POST', '/v1/operations', {
      body: { ...SUBMISSION, payload: { ...SUBMISSION.payload, amount_minor: 1 } },
    });
    expect(mismatch.status).toBe(422);
    const items = [SUBMISSION, {}, { ...SUBMISSION, identity: { run_id: 'x' } }];
    expect((await described('POST', '/v1/operations/batch', { body: items })).status).toBe(207);
    expect((await described('POST', '/v1/operations/batch', { body: [] })).status).toBe(400);
  });

  it('of each situation of an operation fit, and of each act on it', async () => {
    const planned = await plan('note.write');
    await described('POST', `/v1/operations/${planned}/cancel`, { body: { reason: 'ordered twice' } });
    const unknown = await plan('note.write');
    await api.apply(unknown, startAttempt(), attemptUnknown());
    const cancelled = await described('POST', `/v1/operations/${unknown}/cancel`);
    expect(cancelled.body.code).toBe('not_cancellable');
    const admin = { key: KEYS.admin };
    expect((await described('POST', `/v1/operations/${unknown}/reconcile`, admin)).body.code).toBe('no_lookup');
    const checked = await plan('refund.create');
    await api.apply(checked, startAttempt(), attemptUnknown());
    expect((await described('POST', `/v1/operations/${checked}/reconcile`, admin)).status).toBe(202);
    const { headers, body } = await described('GET', `/v1/operations/${unknown}`);
    expect(body.review.open).toBe(true);
    const resolve = (etag: string | null, verdict: object) =>
      described('POST', `/v1/operations/${unknown}/resolve`, {
        ...admin,
        body: verdict,
        headers: etag === null ? {} : { 'if-match': etag },
      });
    const verdict = { decision: 'happened', reason: 'seen', provider_operation_id: 'pay_9' };
    expect((await resolve(null, verdict)).status).toBe(428);
    expect((await resolve('"77"', verdict)).status).toBe(412);
    expect((await resolve(String(headers.etag), { ...verdict, provider_operation_id: null })).body.code).toBe('decision_not_allowed');
    expect((await resolve(String(headers.etag), verdict)).status).toBe(200);
    expect((await resolve(String(headers.etag), { ...verdict, reason: 'other' })).body.code).toBe('review_already_decided');
    const done = await plan('refund.create');
    await api.apply(done, startAttempt(), attemptSucceeded(await api.seal(done, { id: 'pay_1' })));
    for (const id of [planned, unknown, checked, done]) {
      const read = await described('GET', `/v1/operations/${id}`);
      expect((await described('GET', `/v1/operations/${id}`, { headers: { 'if-none-match': String(read.headers.etag) } })).status).toBe(
        304,
      );
      await described('GET', `/v1/operations/${id}/events`);
      await described('GET', `/v1/operations/${id}/events?at=2999-01-01T00:00:00Z`);
    }
    await described('GET', '/v1/operations?limit=2');
  });

  it.each(['/v1/capabilities', '/livez', '/readyz', '/readyz?verbose', '/metrics', '/openapi.json'])('of %s fit', async (url) => {
    expect((await described('GET', url)).status).toBe(200);
  });

  it('of what is refused fit', async () => {
    const statuses = [];
    for (const [method, url, call] of REFUSED) statuses.push((await described(method, url, call)).status);
    expect(statuses).toEqual([404, 405, 404, 400, 401, 403, 415, 400]);
  });

  it('of what can not be served fit', async () => {
    const fault = () => Promise.reject(new LogUnavailable('away'));
    const log = Object.assign(Object.create(api.log) as TestApi['log'], { readStream: fault, append: fault });
    const away = await startApi({
      log,
      view: { list: () => Promise.reject(new Error('away')) },
      readiness: [{ name: 'log', check: fault }],
    });
    for (const [method, url, call] of [
      ['GET', `/v1/operations/op_${'0'.repeat(32)}`, {}],
      ['GET', '/v1/operations', {}],
      ['POST', '/v1/operations', { body: SUBMISSION }],
      ['GET', '/readyz?verbose', {}],
    ] as const) {
      const answer = await away.call(method, url, call);
      expect(answer.status).toBe(503);
      expect(description.faultOf(method, url, answer)).toBeNull();
    }
    await away.close();
  });
});

const REFUSED: readonly (readonly [string, string, Call])[] = [
  ['GET', '/v1/nothing', {}],
  ['DELETE', '/v1/operations', {}],
  ['GET', '/v1/operations/op_1', {}],
  ['GET', '/v1/operations?limit=0&other=1', {}],
  ['GET', '/v1/operations', { key: null }],
  ['POST', '/v1/operations', { key: KEYS.auditor, body: SUBMISSION }],
  ['POST', '/v1/operations', { raw: 'x', headers: { 'content-type': 'text/plain' } }],
  ['POST', '/v1/operations', { raw: '{"a":1,"a":2}' }],
];

async function plan(actionType: 'note.write' | 'refund.create'): Promise<string> {
  const identity = { workflow_id: randomUUID(), step: 's', object: 'o', revision: 1 };
  const payload = actionType === 'refund.create' ? SUBMISSION.payload : {};
  return (await described('POST', '/v1/operations', { body: { action_type: actionType, identity, payload } })).body.operation_id;
}
