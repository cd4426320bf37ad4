import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderAdapter } from '#domain';
import { adapterOf, call } from './provider-fixture.js';
import { answer, close, hang, raw, reset, ScriptedServer, type Behaviour } from './scripted-server.js';

const declared = `
idempotency: { header: Idempotency-Key, retention: 24h }
outcomes: { final: [400, 402, 404, 422], not_consumed: [401, 408, 425, 429, 503], in_progress: [409] }`;
const action = 'result: { provider_operation_id: id, keep: [status, /data/code] }';
const server = { at: new ScriptedServer() };
let adapter: ProviderAdapter | null = null;

beforeEach(async () => {
  server.at = new ScriptedServer();
  await server.at.listen();
});
afterEach(async () => {
  await adapter?.close();
  adapter = null;
  await server.at.close();
});

function provider(lines: string, actionLines = action): ProviderAdapter {
  adapter = adapterOf({ provider: `kind: http\nbase_url: ${server.at.origin}/base\n${lines}`, action: actionLines });
  return adapter;
}

const notSent = (code: string, reached: boolean, retryAfterMs: number | null = null) => ({ kind: 'not_sent', code, reached, retryAfterMs });
const unknown = (code: string, status: number | null) => ({ kind: 'unknown', code, status });
const failed = (status: number) => expect.objectContaining({ kind: 'failed', code: `http_${status}` });

describe('what the answer of an HTTP provider becomes (design: "Classifying an answer")', () => {
  const table: readonly [seen: string, behaviour: Behaviour, becomes: unknown][] = [
    ['408 declared not consumed', answer(408, '{}'), notSent('http_408', true)],
    ['425 declared not consumed', answer(425, '{}'), notSent('http_425', true)],
    ['429 with Retry-After in seconds', answer(429, '{}', ['retry-after: 7']), notSent('http_429', true, 7_000)],
    ['401 declared not consumed', answer(401, '{}'), notSent('http_401', true)],
    ['503 declared not consumed', answer(503, ''), notSent('http_503', true)],
    ['409 declared key in progress', answer(409, '{}'), notSent('key_in_progress', true)],
    ['400 declared final', answer(400, '{}'), failed(400)],
    ['402 declared final', answer(402, 'not even JSON'), failed(402)],
    ['404 declared final', answer(404, ''), failed(404)],
    ['422 declared final', answer(422, '{}'), failed(422)],
    ['500', answer(500, '{}'), unknown('server_error', 500)],
    ['502', answer(502, '<html>'), unknown('server_error', 502)],
    ['504', answer(504, ''), unknown('server_error', 504)],
    ['403, not declared', answer(403, '{}'), unknown('unexpected_status', 403)],
    ['a redirect to another host', answer(307, '', ['location: http://127.0.0.1:1/elsewhere']), unknown('redirect', 307)],
    ['201 with an empty body', answer(201, ''), unknown('unreadable_response', 201)],
    ['200 with a broken body', answer(200, '{"id":"po_1'), unknown('unreadable_response', 200)],
    ['200 without the declared id', answer(200, '{"status":"done"}'), unknown('unreadable_response', 200)],
    ['200 with an id that lost its digits', answer(200, '{"id":9196877626998784}'), unknown('unreadable_response', 200)],
    ['200 larger than 1 MiB', answer(200, `{"id":"po_1","x":"${'x'.repeat(1024 * 1024)}"}`), unknown('unreadable_response', 200)],
    ['a reset after the request was read', reset, unknown('reset', null)],
    ['a close after the request was read', close, unknown('reset', null)],
    ['no answer in time', hang, unknown('timeout', null)],
    ['silence after the first bytes of a 200', raw('HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"id":'), unknown('timeout', 200)],
    ['silence after the first bytes of a declared 402', raw('HTTP/1.1 402 X\r\ncontent-length: 20\r\n\r\n{'), unknown('timeout', 402)],
    ['a close amid the body', raw('HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"id":', (socket) => socket.end()), unknown('reset', 200)],
    ['no HTTP', raw('SSH-2.0-OpenSSH_9.9\r\n'), unknown('unreadable_response', null)],
  ];

  it.each(table)('%s', async (_seen, behaviour, becomes) => {
    server.at.behaviours = [behaviour];
    expect(await provider(`${declared}\ntimeout: 300ms`).call(call())).toEqual(becomes);
    expect(server.at.requests).toHaveLength(1);
  });

  it('200 with a readable body', async () => {
    server.at.behaviours = [answer(200, '{"id":"po_1","status":"done","data":{"code":7},"more":1}')];
    expect(await provider(declared).call(call())).toEqual({
      kind: 'succeeded',
      providerOperationId: 'po_1',
      result: { status: 'done', code: 7 },
      // sha256sum of the body
      responseDigest: '01f3595f441c2257a0839955dd80f17b284291642bfccdde7f8f059610d0ab47',
    });
  });

  it('a Retry-After date is turned into the time until then', async () => {
    const inAMinute = new Date(Date.now() + 60_000).toUTCString();
    server.at.behaviours = [answer(429, '', [`retry-after: ${inAMinute}`])];
    const told = await provider(declared).call(call());
    const retryAfterMs = told.kind === 'not_sent' ? told.retryAfterMs! : 0;
    expect(retryAfterMs).toBeGreaterThan(50_000);
    expect(retryAfterMs).toBeLessThanOrEqual(60_000);
  });

  it('nothing is believed that is not declared', async () => {
    const undeclared = provider('timeout: 1s');
    for (const status of [400, 401, 402, 404, 408, 409, 422, 425, 429]) {
      server.at.behaviours = [answer(status, '{}')];
      expect(await undeclared.call(call())).toEqual(unknown('unexpected_status', status));
    }
    server.at.behaviours = [answer(503, '{}')];
    expect(await undeclared.call(call())).toEqual(unknown('server_error', 503));
  });

  it('409 from a provider that rejects a repeated reference', async () => {
    server.at.behaviours = [answer(409, '{}')];
    expect(await provider('outcomes: { already_done: [409] }').call(call())).toEqual({ kind: 'already_done' });
  });

  it('a provider declared to answer without a body is believed by its status', async () => {
    server.at.behaviours = [answer(204, '')];
    expect(await provider('', 'result: none').call(call())).toMatchObject({ kind: 'succeeded', providerOperationId: null, result: null });
  });
});

describe('no connection: nothing can have been sent', () => {
  const at = (origin: string) => (adapter = adapterOf({ provider: `kind: http\nbase_url: ${origin}\ntimeout: 2s` }));

  it('a refused connection', async () => {
    const { origin } = server.at;
    await server.at.close();
    server.at = new ScriptedServer();
    await server.at.listen();
    // A port that nobody listens on: the one just closed.
    expect(await at(origin).call(call())).toEqual(notSent('connection_refused', false));
  });

  it('a name that does not resolve (RFC 6761: .invalid never does)', async () => {
    expect(await at('http://provider.invalid').call(call())).toEqual(notSent('dns_failure', false));
  });

  it('a TLS handshake that fails', async () => {
    const garbage = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end('this is no TLS\r\n'));
    });
    await new Promise<void>((resolve) => garbage.listen(0, '127.0.0.1', resolve));
    try {
      expect(await at(`https://127.0.0.1:${(garbage.address() as AddressInfo).port}`).call(call())).toEqual(notSent('tls_failure', false));
    } finally {
      await new Promise((resolve) => garbage.close(resolve));
    }
  });

  it('a TLS handshake that never ends, and the request is not sent when it ends after all', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    try {
      const told = await at(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`).call(call({ timeoutMs: 100 }));
      expect(told).toEqual(notSent('connect_timeout', false));
    } finally {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => silent.close(resolve));
    }
  });

  it('an adapter that was closed', async () => {
    const closed = provider('');
    await closed.close();
    expect(await closed.call(call())).toEqual(notSent('adapter_closed', false));
  });
});

describe('public case 27: one attempt is one request on the wire', () => {
  it('a 503 that is not declared is not asked again', async () => {
    server.at.behaviours = [answer(503, '{}'), answer(200, '{"id":"po_2"}')];
    expect(await provider('').call(call())).toEqual(unknown('server_error', 503));
    expect(server.at.requests).toHaveLength(1);
  });

  it.each([
    ['reset', reset],
    ['closed', close],
  ])('a kept-alive socket that is %s on its second request', async (_how, behaviour) => {
    server.at.behaviours = [answer(200, '{"id":"po_1"}'), behaviour, answer(200, '{"id":"po_3"}')];
    const kept = provider('limits: { concurrency: 1 }');
    expect(await kept.call(call())).toMatchObject({ kind: 'succeeded' });
    expect(await kept.call(call())).toEqual(unknown('reset', null));
    expect(server.at.requests.map(({ connection }) => connection)).toEqual([1, 1]);
  });

  it('a socket that the peer closes while the next request is on its way: sent once, on whichever connection', async () => {
    // Answered and closed in one go, without saying so before: the close and the next request cross.
    const answerAndClose: Behaviour = (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n{"id":"po_1"}');
    server.at.behaviours = [answerAndClose];
    const kept = provider('limits: { concurrency: 1 }\ntimeout: 2s');
    const rounds = 50;
    const told: string[] = [];
    for (let round = 0; round < rounds; round++) told.push((await kept.call(call())).kind);
    expect(server.at.requests.length).toBeLessThanOrEqual(rounds);
    // Each success was seen by the server, and nothing that was not sent was.
    const sent = told.filter((kind) => kind !== 'not_sent').length;
    expect(server.at.requests.length).toBeLessThanOrEqual(sent);
    expect(server.at.requests.length).toBeGreaterThanOrEqual(told.filter((kind) => kind === 'succeeded').length);
  });

  it('calls that wait for a connection move on when it breaks, and are still sent once each', async () => {
    server.at.behaviours = [reset, reset, reset, answer(200, '{"id":"po_1"}')];
    const narrow = provider('limits: { concurrency: 1 }');
    const told = await Promise.all([1, 2, 3, 4].map((attempt) => narrow.call(call({ attempt }))));
    expect(told.map(({ kind }) => kind)).toEqual(['unknown', 'unknown', 'unknown', 'succeeded']);
    expect(server.at.requests).toHaveLength(4);
  });

  it('a call whose time is up while it waits for a connection is never sent', async () => {
    server.at.behaviours = [hang];
    const narrow = provider('limits: { concurrency: 1 }');
    const first = narrow.call(call({ timeoutMs: 400 }));
    await server.at.arrived(1);
    expect(await narrow.call(call({ timeoutMs: 50 }))).toEqual(notSent('connect_timeout', false));
    expect(await first).toEqual(unknown('timeout', null));
    server.at.behaviours = [answer(200, '{"id":"po_1"}')];
    expect(await narrow.call(call())).toMatchObject({ kind: 'succeeded' });
    expect(server.at.requests).toHaveLength(2);
  });
});

describe('public case 15: the provider key on the wire', () => {
  it('is the same in the declared header for every attempt and adapter, and never in the URL', async () => {
    server.at.behaviours = [reset, answer(200, '{"id":"po_1"}')];
    const { providerKey } = call();
    await provider(declared).call(call());
    await adapter!.call(call({ attempt: 2 }));
    await adapter!.close();
    await provider(declared).call(call({ attempt: 3 }));
    expect(server.at.requests.map(({ headers }) => headers['idempotency-key'])).toEqual([providerKey, providerKey, providerKey]);
    expect(server.at.requests.map(({ path }) => path)).toEqual(Array(3).fill('/base/v1/things'));
  });

  it('goes as a reference where a header template asks for it', async () => {
    server.at.behaviours = [answer(200, '{"id":"po_1"}')];
    await provider('headers: { X-Reference: "ref-{provider_key}", X-Operation: "{operation_id}", authorization: "Bearer t" }').call(call());
    const [seen] = server.at.requests;
    expect(seen!.headers).toMatchObject({ 'x-reference': `ref-${call().providerKey}`, 'x-operation': 'op_1', authorization: 'Bearer t' });
  });
});

describe('the request', () => {
  it('has the payload as JSON, and the declared method and path with encoded values', async () => {
    server.at.behaviours = [answer(200, '{}')];
    const put = provider('', "request: { method: PUT, path: '/v1/orders/{payload.order_id}?op={operation_id}' }");
    const payload = { order_id: 'a/b ?é', amount_minor: 1 };
    await put.call(call({ payload }));
    const [seen] = server.at.requests;
    expect(seen).toMatchObject({ method: 'PUT', path: '/base/v1/orders/a%2Fb%20%3F%C3%A9?op=op_1' });
    expect(seen!.headers).toMatchObject({ 'content-type': 'application/json', accept: 'application/json' });
    expect(JSON.parse(Buffer.from(seen!.body, 'latin1').toString('utf8'))).toEqual(payload);
  });

  it.each([['..'], ['.'], [''], [null], [{}], ['\ud800']])('is not sent with %j in its path', async (orderId) => {
    const put = provider('', "request: { method: PUT, path: '/v1/orders/{payload.order_id}' }");
    expect(await put.call(call({ payload: { order_id: orderId } }))).toMatchObject({ kind: 'failed', code: 'invalid_request' });
    expect(server.at.connections).toBe(0);
  });

  it('of an action that is not in the catalogue any more is not sent', async () => {
    expect(await provider('').call(call({ actionType: 'thing.destroy' }))).toEqual(notSent('action_not_declared', false));
    expect(server.at.connections).toBe(0);
  });
});
