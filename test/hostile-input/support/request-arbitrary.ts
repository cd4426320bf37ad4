import { randomUUID } from 'node:crypto';
import fc, { type Arbitrary } from 'fast-check';
import type { DescribedParameter, DescribedRoute, Description } from './description.js';
import { fitting } from './schema-arbitrary.js';
import { mutated, NAMES } from './mutations.js';
import { ROLES, TENANTS, type HostileWorld, type Role, type Tenant } from './world.js';

/** A request as it will be sent, and what is known of it. */
export interface Attack {
  readonly route: DescribedRoute;
  readonly tenant: Tenant;
  readonly role: Role;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const ABSENT_ID = `op_${'0123456789abcdef'.repeat(2)}`;

/** Texts for a place in a URL, encoded in ways that a decoder may stumble over. */
export const URL_TEXTS: readonly string[] = [
  ...[
    '',
    '%',
    '%zz',
    '%2',
    '%00',
    '%ff',
    '%c0%af',
    '%ed%a0%80',
    '%f0%9f%98%80',
    '..',
    '.',
    '%2e%2e',
    '..%2f..%2fetc%2fpasswd',
    '%2f',
    '%5c',
    '%25%30%30',
  ],
  ...[
    'x'.repeat(100),
    'x'.repeat(101),
    'x'.repeat(5_000),
    '*',
    ';a=b',
    '%0d%0aset-cookie:%20x',
    '%e2%80%ae',
    'op_',
    `${ABSENT_ID}%00`,
    ABSENT_ID.toUpperCase(),
  ],
  ...[
    '__proto__',
    'constructor',
    'batch',
    'null',
    '-1',
    '0',
    '1e9',
    '+1',
    '101',
    '1.0',
    '%20',
    "'%20or%201=1--",
    '9999-12-31T23:59:59-23:59',
  ],
  ...[
    '0000-01-01T00:00:00%2B23:59',
    '2026-02-30T00:00:00Z',
    '2026-01-01T00:00:00Z',
    '2026-01-01',
    'planned',
    'refund.create',
    'djE6MTphYmM',
  ],
  ...[
    Buffer.from('v1:1:0123456789abcdef').toString('base64url'),
    Buffer.from('v1:999999999999999999:0123456789abcdef').toString('base64url'),
  ],
];

const HEADER_TEXTS: readonly string[] = [
  ...[
    '',
    '""',
    '"',
    'a',
    '"a"',
    '"a',
    '*',
    'W/"1"',
    '"0"',
    '"1"',
    '"2"',
    '1',
    '"1", "2"',
    '"-1"',
    '"99999999999999999999"',
    '"1e3"',
    "'1'",
    '"\\""',
  ],
  ...[
    'wait=0',
    'wait=-1',
    'wait="1',
    'wait=',
    'respond-async, wait=1',
    'wait=1e3',
    '"wait=5',
    'wait=99999999999999',
    'x'.repeat(255),
    'x'.repeat(256),
  ],
  ...[
    'x'.repeat(5_000),
    '\u00e9\u00ff',
    'a\tb',
    '__proto__',
    '00-00000000000000000000000000000000-0000000000000000-00',
    'gzip',
    'chunked, identity',
  ],
];

const CONTENT_TYPES: readonly string[] = [
  ...[
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'text/plain',
    'application/json; charset=utf-16',
    'application/jsonx',
  ],
  ...[
    '',
    'x',
    '*/*',
    'application/json;',
    'application/json; charset="utf-8"',
    'application/json, text/plain',
    'multipart/form-data; boundary=x',
    '__proto__',
  ],
];

/** Any call by anybody: right ones, and ones that were right before something was changed in them. */
export function attacks(world: HostileWorld): Arbitrary<Attack> {
  const { description } = world;
  const bodies = new Map(description.routes.filter(({ body }) => body !== null).map((route) => [route, bodiesOf(description, route)]));
  // Calls with a body have more that can be wrong with them.
  const routes = description.routes.flatMap((route) => (route.body === null ? [route] : [route, route, route]));
  return fc.constantFrom(...routes).chain((route) =>
    fc
      .record({
        tenant: fc.constantFrom(...TENANTS),
        role: fc.constantFrom<Role>('admin', 'operator', ...ROLES),
        url: urlOf(world, route),
        headers: headersOf(route),
        body: bodies.get(route) ?? fc.constantFrom(Buffer.alloc(0), Buffer.from('{}')),
        method: route.method === 'GET' ? fc.constantFrom('GET', 'GET', 'GET', 'HEAD') : fc.constant(route.method),
      })
      .map((drawn): Attack => {
        const body = drawn.method === 'POST' ? drawn.body : Buffer.alloc(0);
        const typed: Record<string, string> =
          body.length > 0 && drawn.headers['content-type'] === undefined ? { 'content-type': 'application/json' } : {};
        return { ...drawn, route, body, headers: { ...typed, ...drawn.headers } };
      }),
  );
}

export function bodiesOf(description: Description, route: DescribedRoute): Arbitrary<Buffer> {
  const valid = fitting(description, route.body);
  const whole = valid.map((value) => Buffer.from(JSON.stringify(value)));
  const none = fc.constant(Buffer.alloc(0));
  return fc.oneof({ arbitrary: whole, weight: 6 }, { arbitrary: mutated(valid), weight: 12 }, { arbitrary: none, weight: 1 });
}

function urlOf(world: HostileWorld, { path, parameters }: DescribedRoute): Arbitrary<string> {
  const ids = [...world.seeded.values()].flatMap((seeded) => seeded.ids);
  const id = fc.oneof(
    { arbitrary: fc.constantFrom(...ids, ABSENT_ID), weight: 9 },
    { arbitrary: fc.constantFrom(...URL_TEXTS.filter(Boolean)), weight: 1 },
  );
  const declared = parameters.filter((parameter) => parameter.in === 'query');
  const known =
    declared.length === 0 ? fc.constant('') : fc.constantFrom(...declared).chain((parameter) => queryPart(world.description, parameter));
  const unknown = fc
    .tuple(fc.constantFrom(...NAMES.filter((name) => name.length < 100)), fc.constantFrom(...URL_TEXTS.slice(0, 20)))
    .map(([name, text]) => `${encodeURIComponent(name)}=${text}`);
  const query = fc.array(fc.oneof({ arbitrary: known, weight: 9 }, { arbitrary: unknown, weight: 1 }), { maxLength: 3 });
  const queried = fc.oneof({ arbitrary: query, weight: declared.length > 0 ? 9 : 1 }, { arbitrary: fc.constant<string[]>([]), weight: 5 });
  return fc.tuple(id, queried).map(([put, parts]) => path.replace('{id}', put) + (parts.length === 0 ? '' : `?${parts.join('&')}`));
}

function queryPart(description: Description, { name, schema }: DescribedParameter): Arbitrary<string> {
  const right = fitting(description, schema).map((value) => encodeURIComponent(String(value)));
  const wrong = fc.constantFrom(...URL_TEXTS);
  return fc.oneof(right, wrong).map((text) => `${name}=${text}`);
}

function headersOf({ parameters, body }: DescribedRoute): Arbitrary<Record<string, string>> {
  const named = parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name.toLowerCase());
  // Rarely: most requests should get past the type of their body.
  const type = body === null ? [] : [fc.constantFrom(...CONTENT_TYPES).map((text): [string, string] => ['content-type', text])];
  const own = fc.constantFrom(...named, 'x-other', 'accept', 'content-encoding').chain((name) => {
    const likely =
      name === 'idempotency-key' ? fc.constant(randomUUID()) : name === 'if-match' ? fc.constantFrom('"0"', '"1"', '"2"', '"3"') : null;
    const any = fc.constantFrom(...HEADER_TEXTS);
    return (likely ? fc.oneof({ arbitrary: likely, weight: 3 }, { arbitrary: any, weight: 2 }) : any).map((text): [string, string] => [
      name,
      text,
    ]);
  });
  const some = fc.array(own, { maxLength: 3 });
  const withType =
    type.length === 0
      ? some
      : fc.oneof(
          { arbitrary: some, weight: 9 },
          { arbitrary: fc.tuple(some, type[0]!).map(([pairs, pair]) => [...pairs, pair]), weight: 1 },
        );
  return withType.map((pairs) => Object.fromEntries(pairs));
}
