import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mayAccess, type Access } from '#apps/command-api/src/http/access.js';
import { ROUTES } from '#apps/command-api/src/openapi/routes.js';
import type { DescribedRoute, SeenAnswer } from './support/description.js';
import { disagreement, faultOf } from './support/judge.js';
import { expectNoCanaries } from './support/canaries.js';
import { everyMutation, mutated } from './support/mutations.js';
import { attacks, URL_TEXTS, type Attack } from './support/request-arbitrary.js';
import { fitting } from './support/schema-arbitrary.js';
import { CANARY_ADDRESS, HostileWorld, ROLES, TENANTS, type Role, type Tenant } from './support/world.js';

/**
 * Requests made from the description, right and wrong ones. A failure prints its seed and path; `HOSTILE_SEED=<seed>` runs it again,
 * `HOSTILE_RUNS=<n>` runs more.
 */
/** A few seconds each on a machine of their own; only one that hangs takes so long. */
const BUSY_MACHINE_MS = 240_000;
const seed = process.env['HOSTILE_SEED'] ? Number(process.env['HOSTILE_SEED']) : undefined;
const runs = (usual: number) => ({
  ...(seed !== undefined && { seed }),
  numRuns: Number(process.env['HOSTILE_RUNS'] ?? usual),
  interruptAfterTimeLimit: BUSY_MACHINE_MS - 20_000,
  markInterruptAsFailure: true,
});

let world: HostileWorld;
beforeAll(async () => {
  world = await HostileWorld.start();
});
afterAll(() => world.close());

function mayAct({ route, role }: Attack): boolean {
  const { access } = ROUTES.find(({ operationId }) => operationId === route.operation.operationId)!;
  return access === 'open' || mayAccess(role, access as Exclude<Access, 'open'>);
}

/** Sends, and holds against all that is always true. */
async function attack(made: Attack) {
  const before = await world.head();
  const headers = { ...world.authorization(made.tenant, made.role), ...made.headers };
  const answer = await world.send({ method: made.method, url: made.url, headers, ...(made.body.length > 0 && { body: made.body }) });
  expect(faultOf(world, made.tenant, made, answer)).toBeNull();
  if (answer.status >= 400) expect(await world.head()).toBe(before);
  return answer;
}

describe('any request by anybody', () => {
  it('is answered as described, tells nothing, and leaves nothing behind where it is refused', { timeout: BUSY_MACHINE_MS }, async () => {
    const statuses = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(attacks(world), async (made) => {
        const answer = await attack(made);
        const isPlain =
          !('content-type' in made.headers && made.headers['content-type'] !== 'application/json') && !('content-encoding' in made.headers);
        // What stands before the body in its order: the path, the key's header.
        const code = answer.status >= 400 && answer.text !== '' ? (JSON.parse(answer.text) as { code: string }).code : '';
        if (isPlain && answer.status !== 414 && code !== 'malformed_url' && !['route_not_found', 'method_not_allowed'].includes(code)) {
          expect(
            disagreement(world, world.description.find(made.method, made.url) ?? made.route, made.body, mayAct(made), answer),
          ).toBeNull();
        }
        const told = `${made.route.operation.operationId} ${answer.status}`;
        statuses.set(told, (statuses.get(told) ?? 0) + 1);
      }),
      runs(1_000),
    );
    // An attack that only ever bounces off the first wall shows nothing.
    // With fewer runs than usual there is no telling what they reach.
    if (process.env['HOSTILE_RUNS']) return;
    for (const told of [
      'planOperation 202',
      'planOperation 400',
      'planOperations 207',
      'readOperation 200',
      'readOperation 404',
      'listOperations 200',
      'listOperations 400',
      'cancelOperation 409',
      'resolveOperation 428',
      'readHistory 200',
    ]) {
      expect(statuses.get(told) ?? 0, told).toBeGreaterThan(0);
    }
    expect((await world.send({ method: 'GET', url: '/livez', headers: {} })).status).toBe(200);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe('every nasty value in every place', () => {
  const about = {
    identity: { case_id: 'c-1' },
    payload: { priority: 'low', lines: [{ text: CANARY_ADDRESS, count: 1 }] },
    source: { channel: 'agent' },
  };
  const bodies: readonly [string, unknown][] = [
    ['planOperation', { action_type: 'ticket.open', ...about }],
    ['planOperation', { action_type: 'note.write', identity: { workflow_id: 'w-1' }, payload: {} }],
    ['planOperations', [{ action_type: 'note.write', identity: { workflow_id: 'w-1' }, payload: {} }]],
    ['cancelOperation', { reason: 'r' }],
    ['resolveOperation', { decision: 'happened', reason: 'r', provider_operation_id: 'p', evidence: 'e' }],
  ];

  it.each(bodies)('of a body of %s', { timeout: BUSY_MACHINE_MS }, async (operationId, right) => {
    const route = world.description.route(operationId);
    const url = route.path.replace('{id}', `op_${'0'.repeat(32)}`);
    const headers = { ...world.authorization('tenant-a', 'admin'), 'content-type': 'application/json' };
    const before = await world.head();
    let planned = 0;
    for (const body of everyMutation(right)) {
      const answer = await world.send({ method: 'POST', url, headers, body });
      const fault = faultOf(world, 'tenant-a', { method: 'POST', url }, answer) ?? disagreement(world, route, body, true, answer);
      expect(fault, body.toString('utf8').slice(0, 400)).toBeNull();
      const items = answer.status === 207 ? (JSON.parse(answer.text) as { status: number; headers: Record<string, string> }[]) : [answer];
      planned += items.filter((item) => item.status === 202 && !item.headers['idempotent-replayed']).length;
    }
    expect(await world.head()).toBe(before + BigInt(planned));
  });

  it('of a path and of each parameter', async () => {
    const before = await world.head();
    for (const route of world.description.routes) {
      const places = [
        ...route.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => `?${name}=`),
        '?',
        '?x=',
        '?x[y]=',
      ];
      for (const text of URL_TEXTS) {
        const inPath = route.path.includes('{id}')
          ? [route.path.replace('{id}', text)]
          : [`${route.path}/${text}`, `/${text}${route.path}`];
        const own = route.path.replace('{id}', world.seeded.get('tenant-a')!.ids[0]!);
        for (const url of [...inPath, ...places.map((place) => `${own}${place}${text}`)]) {
          const answer = await world.send({
            method: route.method === 'POST' ? 'PUT' : 'GET',
            url,
            headers: world.authorization('tenant-a', 'admin'),
          });
          expect(faultOf(world, 'tenant-a', { method: route.method, url }, answer), url).toBeNull();
          expect(parameterDisagreement(route, url, answer), url).toBeNull();
        }
      }
    }
    expect(await world.head()).toBe(before);
  });
});

function isoOf(text: string): string {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString();
}

/** As for bodies: a parameter that fits the description is never refused, one that does not fit is. */
function parameterDisagreement({ method, path, parameters }: DescribedRoute, url: string, { status, text }: SeenAnswer): string | null {
  const [[name, value] = ['', ''], ...others] = new URLSearchParams(url.split('?')[1] ?? '');
  const parameter = parameters.find((each) => each.in === 'query' && each.name === name);
  // A cursor is opaque, and a number has spellings that a schema does not speak of.
  if (method !== 'GET' || !parameter || others.length > 0 || name === 'cursor' || parameter.schema.type !== 'string') return null;
  if (path.includes('{id}') && !url.includes(world.seeded.get('tenant-a')!.ids[0]!)) return null;
  if (value.includes('\ufffd')) return null;
  // An offset can lead out of the years that RFC 3339 can write, which its grammar does not say.
  if (name === 'at' && /^[+-]/.test(isoOf(value))) return null;
  const fits = world.description.fitsSchema(parameter.schema, value);
  return fits === (status !== 400) ? null : `${name} ${fits ? 'fits' : 'does not fit'} and is answered ${status}: ${text.slice(0, 200)}`;
}

describe('a submission', () => {
  const submissions = () =>
    fitting(world.description, world.description.route('planOperation').body).map((value) => {
      const body = value as { identity?: Record<string, unknown> };
      const unique = randomUUID();
      const first = Object.keys(body.identity ?? {})[0];
      const identity = first === undefined ? {} : { identity: { ...body.identity, [first]: unique } };
      return { body: { ...body, ...identity }, key: unique };
    });
  const submit = (tenant: Tenant, key: string, body: string | Buffer) =>
    world.send({
      method: 'POST',
      url: '/v1/operations',
      headers: { ...world.authorization(tenant, 'agent'), 'content-type': 'application/json', 'idempotency-key': key },
      body,
    });

  it(
    'that fits the description is accepted, the same one again is found, and the other tenant’s is another',
    { timeout: BUSY_MACHINE_MS },
    async () => {
      await fc.assert(
        fc.asyncProperty(submissions(), async ({ body, key }) => {
          const text = JSON.stringify(body);
          const [first, again, other] = [
            await submit('tenant-a', key, text),
            await submit('tenant-a', key, text),
            await submit('tenant-b', key, text),
          ];
          expect([first.status, again.status, other.status]).toEqual([202, 202, 202]);
          expect(again.headers['idempotent-replayed']).toBe('true');
          expect(other.headers['idempotent-replayed']).toBeUndefined();
          const idOf = ({ text: answer }: { text: string }) => (JSON.parse(answer) as { operation_id: string }).operation_id;
          expect(idOf(again)).toBe(idOf(first));
          expect(idOf(other)).not.toBe(idOf(first));
        }),
        runs(150),
      );
    },
  );

  it('that is refused has not used up its key', { timeout: BUSY_MACHINE_MS }, async () => {
    let refusals = 0;
    await fc.assert(
      fc.asyncProperty(
        submissions().chain((right) => mutated(fc.constant(right.body)).map((wrong) => ({ ...right, wrong }))),
        async ({ body, key, wrong }) => {
          const before = await world.head();
          const refused = await submit('tenant-a', key, wrong);
          expect(faultOf(world, 'tenant-a', { method: 'POST', url: '/v1/operations' }, refused)).toBeNull();
          if (refused.status < 400) return;
          refusals++;
          expect(await world.head()).toBe(before);
          const right = await submit('tenant-a', key, JSON.stringify(body));
          expect([right.status, right.headers['idempotent-replayed']]).toEqual([202, undefined]);
        },
      ),
      runs(300),
    );
    expect(refusals).toBeGreaterThan(50);
  });
});

describe('another tenant’s operation', () => {
  const absent = `op_${'ab'.repeat(16)}`;
  const variable = new Set(['date', 'keep-alive', 'connection']);

  it('is answered exactly as one that does not exist, on every route, for every role', async () => {
    const routes = world.description.routes.filter(({ path }) => path.includes('{id}'));
    const verdict = JSON.stringify({ decision: 'give_up', reason: 'nobody can tell' });
    for (const tenant of TENANTS) {
      const other = TENANTS.find((each) => each !== tenant)!;
      for (const [route, role] of routes.flatMap((each) => ROLES.map((role): [typeof each, Role] => [each, role]))) {
        const call = async (id: string) => {
          const headers = {
            ...world.authorization(tenant, role),
            'if-match': '"1"',
            ...(route.body && { 'content-type': 'application/json' }),
          };
          const body = route.body ? (route.path.endsWith('resolve') ? verdict : '{}') : undefined;
          const answer = await world.send({ method: route.method, url: route.path.replace('{id}', id), headers, ...(body && { body }) });
          return { ...answer, headers: Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !variable.has(name))) };
        };
        const missing = await call(absent);
        expect([404, 403]).toContain(missing.status);
        for (const id of world.seeded.get(other)!.ids) expect(await call(id)).toEqual(missing);
      }
    }
  });

  it('is in no list, whatever is searched for', async () => {
    for (const tenant of TENANTS) {
      const other = world.seeded.get(TENANTS.find((each) => each !== tenant)!)!;
      for (const mark of other.marks) {
        for (const parameter of ['q', 'workflow_id', 'action_type']) {
          const url = `/v1/operations?${parameter}=${encodeURIComponent(mark)}`;
          const answer = await world.send({ method: 'GET', url, headers: world.authorization(tenant, 'admin') });
          expect(JSON.parse(answer.text)).toEqual({ operations: [], next_cursor: null, has_more: false });
        }
      }
    }
  });

  it('is not reached by a cursor of its tenant', async () => {
    const first = await world.send({ method: 'GET', url: '/v1/operations?limit=1', headers: world.authorization('tenant-b', 'admin') });
    const { next_cursor: cursor } = JSON.parse(first.text) as { next_cursor: string };
    const answer = await world.send({
      method: 'GET',
      url: `/v1/operations?limit=1&cursor=${cursor}`,
      headers: world.authorization('tenant-a', 'admin'),
    });
    expect(answer.status).toBe(400);
  });
});

describe('while the log is away', () => {
  it('any request is answered, and with nothing worse than 503', { timeout: BUSY_MACHINE_MS }, async () => {
    world.away = true;
    try {
      let unserved = 0;
      await fc.assert(
        fc.asyncProperty(attacks(world), async (made) => {
          if ((await attack(made)).status === 503) unserved++;
        }),
        runs(300),
      );
      expect(unserved).toBeGreaterThan(0);
    } finally {
      world.away = false;
    }
    expect((await world.send({ method: 'GET', url: '/livez', headers: {} })).status).toBe(200);
  });
});

describe('after all of it', () => {
  it('no secret and no address is in a log line, a metric or a row', async () => {
    // A rejected key too: it may be a real one with a slip.
    const body = JSON.stringify({
      action_type: 'note.write',
      identity: { workflow_id: 'canary' },
      payload: { to: CANARY_ADDRESS, list: [CANARY_ADDRESS] },
    });
    const headers = { ...world.authorization('tenant-a', 'agent'), 'content-type': 'application/json' };
    for (const wrong of [body, body.slice(0, -1), body.replace('"payload"', '"payloads"'), body.replace('note.write', 'refund.create')]) {
      const answer = await world.send({ method: 'POST', url: '/v1/operations', headers, body: wrong });
      expect(faultOf(world, 'tenant-a', { method: 'POST', url: '/v1/operations' }, answer)).toBeNull();
    }
    await expectNoCanaries(world);
    expect(world.lines.length).toBeGreaterThan(0);
  });
});
