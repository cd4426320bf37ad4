import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectNoCanaries } from './support/canaries.js';
import { faultOf } from './support/judge.js';
import { openSocket, readAnswers, talk, type Conversation, type Talk } from './support/raw-socket.js';
import { HostileWorld } from './support/world.js';

const seed = process.env['HOSTILE_SEED'] ? Number(process.env['HOSTILE_SEED']) : undefined;

let world: HostileWorld;
let slow: Promise<{ readonly headers: Conversation; readonly body: Conversation; readonly headsAt: readonly [bigint, bigint] }>;
beforeAll(async () => {
  world = await HostileWorld.start();
  // They take as long as the server's patience does; the other tests run meanwhile.
  slow = talkSlowly();
  slow.catch(() => undefined);
});
afterAll(() => world.close());

const key = () => `authorization: Bearer ${world.key('tenant-a', 'agent')}`;
const JSON_TYPE = 'content-type: application/json';
const submission = (name: string = randomUUID()) => `{"action_type":"note.write","identity":{"workflow_id":"${name}"},"payload":{}}`;

/** A request as lines; its length is counted unless told. */
function post(
  body: string | Buffer,
  {
    path = '/v1/operations',
    lines = [],
    length,
    close = true,
  }: { path?: string; lines?: readonly string[]; length?: string | null; close?: boolean } = {},
): Buffer {
  const bytes = Buffer.from(body as string);
  const counted = length === undefined ? String(bytes.length) : length;
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: x',
    key(),
    ...(lines.some((line) => line.startsWith('content-type')) ? [] : [JSON_TYPE]),
    ...(counted === null ? [] : [`content-length: ${counted}`]),
    ...(close ? ['connection: close'] : []),
    ...lines,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]);
}

const get = (path: string, ...lines: string[]) => `GET ${path} HTTP/1.1\r\nhost: x\r\n${[key(), ...lines].join('\r\n')}\r\n\r\n`;

/** Sends, and holds each answer against all that is always true. */
async function converse(bytes: Buffer | string, options: Talk = {}): Promise<Conversation> {
  const conversation = await talk(world.port, bytes, options);
  const [method = '', url = ''] = Buffer.from(bytes as string)
    .toString('latin1')
    .split('\r\n', 1)[0]!
    .split(' ');
  for (const answer of conversation.answers) {
    // Only the first is to the first line.
    const about = conversation.answers.length === 1 ? { method, url } : { method: 'GET', url: '/' };
    if (conversation.answers.length === 1 || answer.status >= 400) expect(faultOf(world, 'tenant-a', about, answer)).toBeNull();
    expect(answer.status).toBeLessThan(500);
  }
  expect(conversation.rest).toBe('');
  return conversation;
}

/** The one answer; what is refused has left nothing behind. */
async function refused(bytes: Buffer | string, options: Talk = {}): Promise<string> {
  const before = await world.head();
  const { answers } = await converse(bytes, options);
  expect(await world.head()).toBe(before);
  expect(answers).toHaveLength(1);
  const { status, text } = answers[0]!;
  return `${status} ${text === '' ? '' : (JSON.parse(text) as { code?: string }).code}`;
}

async function stillServes(): Promise<void> {
  const { answers } = await talk(world.port, post(submission()));
  expect(answers.map(({ status }) => status)).toEqual([202]);
}

describe('a body that no serialiser would write', () => {
  const utf16 = Buffer.from(submission(), 'utf16le');
  it.each<[string, string | Buffer, string]>([
    ['a member twice', submission().replace('"payload"', '"action_type":"refund.create","payload"'), '400 duplicate_member'],
    ['a member twice, once escaped', '{"a":1,"\\u0061":2}', '400 duplicate_member'],
    ['an end that is missing', submission().slice(0, -1), '400 malformed_json'],
    ['a byte order mark', `\ufeff${submission()}`, '400 malformed_json'],
    ['overlong UTF-8', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]), '400 invalid_utf8'],
    [
      'a surrogate in UTF-8',
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
      '400 invalid_utf8',
    ],
    ['UTF-16', Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]), '400 invalid_utf8'],
    ['NULs around', `\u0000${submission()}\u0000`, '400 malformed_json'],
    ['a nesting that would overflow a stack', '['.repeat(200_000), '400 too_deep'],
    ['a number of 200,000 digits', `{"a":${'9'.repeat(200_000)}}`, '400 number_out_of_range'],
    ['nothing', '', '400 body_missing'],
    ['two values', `${submission()}${submission()}`, '400 malformed_json'],
  ])('%s', async (_, body, code) => {
    expect(await refused(post(body))).toBe(code);
  });

  it('20,000 members that are not known are answered in little', async () => {
    const body = `{${Array.from({ length: 20_000 }, (_, n) => `"m${n}":0`).join(',')}}`;
    const { answers } = await converse(post(body));
    expect(answers[0]!.status).toBe(400);
    expect(answers[0]!.text.length).toBeLessThan(32 * 1024);
  });
});

describe('framing', () => {
  const chunked = (...chunks: string[]) => post(chunks.join(''), { length: null, lines: ['transfer-encoding: chunked'] });
  const whole = submission('framing');

  it.each<[string, () => Buffer, string]>([
    ['two lengths', () => post(whole, { lines: ['content-length: 1'] }), '400 malformed_request'],
    ['the same length twice', () => post(whole, { lines: [`content-length: ${whole.length}`] }), '400 malformed_request'],
    ['a length and chunks', () => post(`5\r\nhello\r\n0\r\n\r\n`, { lines: ['transfer-encoding: chunked'] }), '400 malformed_request'],
    ['a length below zero', () => post(whole, { length: '-1' }), '400 malformed_request'],
    ['a length with a sign', () => post(whole, { length: '+5' }), '400 malformed_request'],
    ['a length that is no number', () => post(whole, { length: '0x10' }), '400 malformed_request'],
    ['a length of 25 digits', () => post(whole, { length: '9'.repeat(25) }), '400 malformed_request'],
    ['a length above the limit', () => post(whole, { length: String(256 * 1024 + 1) }), '413 body_too_large'],
    ['a length of petabytes', () => post(whole, { length: '9007199254740991' }), '413 body_too_large'],
    [
      'an unknown transfer encoding',
      () => post(whole, { length: null, lines: ['transfer-encoding: gzip, identity'] }),
      '400 malformed_request',
    ],
    ['chunked twice', () => post('0\r\n\r\n', { length: null, lines: ['transfer-encoding: chunked, chunked'] }), '400 malformed_request'],
    ['a chunk size that is none', () => chunked('zz\r\nab\r\n0\r\n\r\n'), '400 malformed_request'],
    ['a chunk size beyond 64 bits', () => chunked('fffffffffffffffff\r\na\r\n0\r\n\r\n'), '400 malformed_request'],
    ['a chunk longer than it says', () => chunked(`2\r\n${whole}\r\n0\r\n\r\n`), '400 malformed_request'],
    ['a chunk extension without end', () => chunked(`2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`), '400 malformed_request'],
  ])('%s', async (_, bytes, code) => {
    expect(await refused(bytes())).toBe(code);
    await stillServes();
  });

  it('a body that ends early', async () => {
    const before = await world.head();
    const { answers } = await converse(post(whole.slice(0, 20), { length: String(whole.length) }), { end: true });
    for (const { status } of answers) expect(status).toBe(400);
    expect(await world.head()).toBe(before);
    await stillServes();
  });

  it('chunks that end early', async () => {
    const before = await world.head();
    await converse(chunked(`${whole.length.toString(16)}\r\n${whole}\r\n`), { end: true });
    expect(await world.head()).toBe(before);
  });

  it('a body in chunks of one byte is read', async () => {
    const text = submission();
    const { answers } = await converse(chunked(...[...text].map((each) => `1\r\n${each}\r\n`), '0\r\n\r\n'));
    expect(answers[0]!.status).toBe(202);
  });

  it('a body behind a call that takes none is no call of its own', async () => {
    const before = await world.head();
    const smuggled = post(submission()).toString('latin1');
    const { answers } = await converse(get('/livez', `content-length: ${smuggled.length}`, 'connection: close') + smuggled);
    expect(answers.map(({ status }) => status)).toEqual([200]);
    expect(await world.head()).toBe(before);
  });
});

describe('headers', () => {
  it.each<[string, readonly string[], string]>([
    ['Idempotency-Key twice', ['idempotency-key: a', 'idempotency-key: b'], '400 idempotency_key_repeated'],
    ['Idempotency-Key twice, the same', ['idempotency-key: a', 'Idempotency-Key: a'], '400 idempotency_key_repeated'],
    ['Idempotency-Key of nothing', ['idempotency-key:'], '400 idempotency_key_invalid'],
    ['Idempotency-Key of blanks', ['idempotency-key:  \t '], '400 idempotency_key_invalid'],
    ['Idempotency-Key of bytes above ASCII', ['idempotency-key: \u00ff\u00fe'], '400 idempotency_key_invalid'],
    ['Content-Type twice', ['content-type: application/json', 'content-type: text/plain'], '415 unsupported_media_type'],
    ['Content-Encoding', ['content-encoding: gzip'], '415 unsupported_media_type'],
    ['Content-Encoding twice', ['content-encoding: identity', 'content-encoding: gzip'], '415 unsupported_media_type'],
    ['Host twice', ['host: y'], '400 malformed_request'],
    ['a name with a blank behind it', ['x-a : 1'], '400 malformed_request'],
    ['no colon', ['x-a'], '400 malformed_request'],
    ['a folded line', ['x-a: 1', ' 2'], '400 malformed_request'],
    ['a NUL', ['x-a: \u0000'], '400 malformed_request'],
    ['a bare CR', ['x-a: 1\rx-b: 2'], '400 malformed_request'],
    ['more than 16 KiB', [`x-a: ${'x'.repeat(17 * 1024)}`], '431 headers_too_large'],
    ['many, of more than 16 KiB', Array.from({ length: 5_000 }, (_, n) => `x-${n}: 1`), '431 headers_too_large'],
    ['more than 100', Array.from({ length: 120 }, (_, n) => `x-${n}: 1`), '431 headers_too_large'],
  ])('%s', async (_, lines, code) => {
    expect(await refused(post(submission(), { lines }))).toBe(code);
    await stillServes();
  });

  it('Authorization twice is nobody', async () => {
    for (const second of [`authorization: Bearer ${world.key('tenant-b', 'admin')}`, key()]) {
      expect(await refused(post(submission(), { lines: [second] }))).toBe('401 authentication_invalid');
    }
  });

  it('a key behind a hundred others is not lost', async () => {
    // Dropped in silence, the second line would be one key of two.
    const lines = ['idempotency-key: a', ...Array.from({ length: 100 }, (_, n) => `x-${n}: 1`), 'idempotency-key: b'];
    expect(await refused(post(submission(), { lines }))).toMatch(/^4\d\d /);
  });

  it('If-Match twice is not one', async () => {
    const id = world.seeded.get('tenant-a')!.ids[4]!;
    const body = '{"decision":"give_up","reason":"r"}';
    const lines = [
      `authorization: Bearer ${world.key('tenant-a', 'admin')}`,
      'host: x',
      JSON_TYPE,
      `content-length: ${body.length}`,
      'connection: close',
      'if-match: "2"',
      'if-match: "3"',
    ];
    expect(await refused(`POST /v1/operations/${id}/resolve HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)).toBe(
      '400 if_match_invalid',
    );
  });
});

describe('the request line', () => {
  it.each<[string, string, string]>([
    ['a method that is none', 'FOO / HTTP/1.1', '400 malformed_request'],
    ['a method in small letters', 'get /livez HTTP/1.1', '400 malformed_request'],
    ['a method of 20,000 letters', `${'A'.repeat(20_000)} / HTTP/1.1`, '400 malformed_request'],
    ['PROPFIND', 'PROPFIND /v1/operations HTTP/1.1', '405 method_not_allowed'],
    ['TRACE', 'TRACE /v1/operations HTTP/1.1', '405 method_not_allowed'],
    ['DELETE', 'DELETE /v1/operations HTTP/1.1', '405 method_not_allowed'],
    ['OPTIONS of everything', 'OPTIONS * HTTP/1.1', '404 route_not_found'],
    ['a way up', 'GET /v1/../livez HTTP/1.1', '404 route_not_found'],
    ['a way up, encoded', 'GET /v1/operations/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1', '404 operation_not_found'],
    ['two slashes', 'GET //v1/operations HTTP/1.1', '404 route_not_found'],
    ['backslashes', 'GET \\v1\\operations HTTP/1.1', '400 malformed_request'],
    ['a percent that is none', 'GET /v1/operations/%zz HTTP/1.1', '400 malformed_url'],
    ['a percent of half a character', 'GET /v1/operations/%ed%a0%80 HTTP/1.1', '400 malformed_url'],
    ['a percent of a NUL', 'GET /v1/operations/op_%00 HTTP/1.1', '404 operation_not_found'],
    ['bytes above ASCII', 'GET /v1/operations/\u00e9\u00ff HTTP/1.1', '400 malformed_request'],
    ['a path of 15,000 letters', `GET /${'x'.repeat(15_000)} HTTP/1.1`, '404 route_not_found'],
    ['an id of 15,000 letters', `GET /v1/operations/${'x'.repeat(15_000)} HTTP/1.1`, '414 url_too_long'],
    ['a query of 15,000 letters', `GET /v1/operations?${'x'.repeat(15_000)} HTTP/1.1`, '400 query_invalid'],
    [
      '3,000 parameters',
      `GET /v1/operations?${Array.from({ length: 3_000 }, (_, n) => n.toString(36)).join('&')} HTTP/1.1`,
      '400 query_invalid',
    ],
    ['HTTP/2', 'PRI * HTTP/2.0', '400 malformed_request'],
    ['HTTP/9.9', 'GET /livez HTTP/9.9', '400 malformed_request'],
    ['no host', 'GET /livez HTTP/1.1\r\nx-no: host', '400 malformed_request'],
  ])('%s', async (name, line, code) => {
    const host = name === 'no host' ? [] : ['host: x'];
    const answer = await refused([line, ...host, key(), 'connection: close', '', ''].join('\r\n'));
    expect(answer).toBe(code);
    await stillServes();
  });

  it('CONNECT, an upgrade and an expectation end in no more than an answer', async () => {
    const before = await world.head();
    for (const lines of [
      ['CONNECT x:443 HTTP/1.1'],
      ['GET /livez HTTP/1.1', 'upgrade: websocket', 'sec-websocket-key: x', 'sec-websocket-version: 13'],
      ['GET /livez HTTP/1.1', 'upgrade: h2c', 'http2-settings: x'],
      ['GET /livez HTTP/1.1', 'expect: the-unexpected'],
    ]) {
      const connection = lines.some((line) => line.startsWith('upgrade')) ? 'connection: upgrade, close' : 'connection: close';
      const { answers } = await converse([...lines, 'host: x', connection, '', ''].join('\r\n'));
      expect(answers.length).toBeLessThanOrEqual(1);
    }
    expect(await world.head()).toBe(before);
    await stillServes();
  });

  it('HTTP/1.0 is served, and closed', async () => {
    const { answers, closed } = await converse(`GET /v1/operations?limit=1 HTTP/1.0\r\n${key()}\r\n\r\n`);
    expect([answers.map(({ status }) => status), closed]).toEqual([[200], true]);
  });

  it('a whole URL is served as its path', async () => {
    const { answers } = await talk(
      world.port,
      `GET http://other.example/v1/operations?limit=1 HTTP/1.1\r\nhost: x\r\n${key()}\r\nconnection: close\r\n\r\n`,
    );
    expect([200, 404]).toContain(answers[0]!.status);
    expect(answers[0]!.status < 500).toBe(true);
  });

  it('what is no HTTP at all is refused', async () => {
    const hello = Buffer.from('16030100a5010000a10303', 'hex');
    for (const bytes of [hello, Buffer.alloc(64), Buffer.from('\r\n\r\n\r\nHELO x\r\n\r\n'), Buffer.from('*1\r\n$4\r\nPING\r\n')]) {
      expect(await refused(bytes)).toBe('400 malformed_request');
    }
    await stillServes();
  });
});

describe('several requests at once', () => {
  it('are answered in their order', async () => {
    const bytes =
      get('/livez') + post(submission(), { close: false }).toString('latin1') + get('/v1/nothing') + get('/readyz', 'connection: close');
    const { answers } = await talk(world.port, bytes);
    expect(answers.map(({ status }) => status)).toEqual([200, 202, 404, 200]);
  });

  it('an intent that is recorded is never answered with what comes behind it', async () => {
    for (const garbage of [
      'GARBAGE\r\n\r\n',
      `${get('/livez', 'content-length: x')}`,
      `GET / HTTP/1.1\r\nx-a: ${'x'.repeat(20_000)}\r\n\r\n`,
    ]) {
      for (const lines of [[], ['prefer: wait=1']]) {
        const before = await world.head();
        const name = randomUUID();
        const { answers } = await talk(world.port, post(submission(name), { close: false, lines }).toString('latin1') + garbage);
        // Told nothing, a client asks again and attaches; told 4xx, it would think that nothing was recorded.
        const recorded = (await world.head()) > before || (await replayed(name));
        if (recorded) expect(answers[0]?.status ?? 202).toBe(202);
      }
    }
    await stillServes();
  });

  it('a hundred are all answered', async () => {
    const { answers } = await talk(world.port, get('/livez').repeat(100), { answers: 100 });
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });

  async function replayed(name: string): Promise<boolean> {
    const { answers } = await talk(world.port, post(submission(name)));
    return answers[0]!.headers['idempotent-replayed'] === 'true';
  }
});

describe('any bytes', () => {
  it('that were a request before they were damaged', { timeout: 240_000 }, async () => {
    const originals = (name: string) => [
      post(submission(name), { lines: ['idempotency-key: k-1', 'prefer: wait=0'] }),
      Buffer.from(get('/v1/operations?limit=2&status=planned', 'connection: close')),
      post(`5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n`, { length: null, lines: ['transfer-encoding: chunked'] }),
    ];
    const damage = fc.record({
      which: fc.nat(2),
      cuts: fc.array(fc.record({ at: fc.nat(1_000), drop: fc.nat(6), put: fc.uint8Array({ maxLength: 6 }) }), {
        minLength: 1,
        maxLength: 4,
      }),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ which, cuts }) => {
        const name = randomUUID();
        let bytes = originals(name)[which]!;
        for (const { at, drop, put } of cuts) {
          const place = Math.floor((at / 1_000) * bytes.length);
          bytes = Buffer.concat([bytes.subarray(0, place), put, bytes.subarray(place + drop)]);
        }
        const { answers } = await talk(world.port, bytes, { end: true });
        for (const answer of answers) {
          const judged = answer.status >= 400 ? faultOf(world, 'tenant-a', { method: 'GET', url: '/' }, answer) : null;
          // Which call was meant is not known any more; the codes and shapes are checked, the route is not.
          if (judged !== null) expect(judged).toMatch(/in the description|Unmatched/);
          expect(answer.status).toBeLessThan(500);
        }
        // By name: what an earlier one left unanswered, since it had hung up, may be recorded only now.
        if (answers.length > 0 && answers.every(({ status }) => status >= 400)) expect(await world.eventsOf(name)).toBe(0);
      }),
      { numRuns: 500, interruptAfterTimeLimit: 200_000, ...(seed !== undefined && { seed }) },
    );
    await stillServes();
  });
});

describe('a client that takes its time', () => {
  it('is told so and let go, and nothing of it is recorded', { timeout: 240_000 }, async () => {
    const { headers, body, headsAt } = await slow;
    for (const { answers, closed } of [headers, body]) {
      expect(answers.map(({ status, text }) => [status, (JSON.parse(text) as { code: string }).code])).toEqual([[408, 'request_timeout']]);
      expect(closed).toBe(true);
    }
    expect(headsAt[0] <= headsAt[1]).toBe(true);
    const { answers } = await talk(world.port, post(submission('slow-body')));
    expect(answers[0]!.headers['idempotent-replayed']).toBeUndefined();
    await stillServes();
  });
});

describe('after all of it', () => {
  it('no secret is in a log line, a metric or a row', () => expectNoCanaries(world));
});

async function talkSlowly() {
  const started = await world.head();
  const trickle = async (bytes: Buffer): Promise<Conversation> => {
    const socket = await openSocket(world.port);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    const whole = bytes.length - 1;
    let at = 0;
    // One byte a second, as a slow client would, and never the last one; the server ends it.
    const timer = setInterval(() => at < whole && socket.write(bytes.subarray(at, ++at)), 1_000);
    at = Math.max(0, whole - 60);
    socket.write(bytes.subarray(0, at));
    await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    clearInterval(timer);
    return { ...readAnswers(chunks), closed: true };
  };
  const inHeaders = Buffer.from(get(`/livez?${'x'.repeat(100)}`).slice(0, -4));
  const [headers, body] = await Promise.all([trickle(inHeaders), trickle(post(submission('slow-body')))]);
  return { headers, body, headsAt: [started, await world.head()] as const };
}
