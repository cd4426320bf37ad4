import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RateLimiter } from '#apps/command-api/src/http/rate-limiter.js';
import { I1, KEYS, startApi, SUBMISSION, type TestApi } from './support/api.js';
import { openSocket, rawRequest } from './support/raw-request.js';

describe('a tenant’s budget', () => {
  it('is a bucket that fills with time', () => {
    let nowMs = 0;
    const limiter = new RateLimiter(10, () => nowMs);
    for (let left = 9; left >= 0; left--) expect(limiter.take('t1', 1)).toEqual({ allowed: true, remaining: left, retryAfterSeconds: 0 });
    expect(limiter.take('t1', 1)).toEqual({ allowed: false, remaining: 0, retryAfterSeconds: 1 });
    expect(limiter.take('t2', 1).allowed).toBe(true);
    nowMs += 99;
    expect(limiter.take('t1', 1).allowed).toBe(false);
    nowMs += 1;
    expect(limiter.take('t1', 1).allowed).toBe(true);
    nowMs += 3_600_000;
    expect(limiter.take('t1', 1).remaining).toBe(9);
  });

  it('is paid back after a batch that was larger than it', () => {
    let nowMs = 0;
    const limiter = new RateLimiter(10, () => nowMs);
    expect(limiter.take('t1', 30).allowed).toBe(true);
    nowMs += 2_000;
    expect(limiter.take('t1', 1)).toEqual({ allowed: false, remaining: 0, retryAfterSeconds: 1 });
    nowMs += 100;
    expect(limiter.take('t1', 1).allowed).toBe(true);
  });
});

describe('with a rate limit', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi({ limits: { rateLimitPerSecond: 2 } });
  });
  afterEach(() => api.close());

  it('the request beyond it is told when to come back, and leaves no trace', async () => {
    const [first, second, third] = [
      await api.submit(),
      await api.submit(),
      await api.submit({ ...SUBMISSION, identity: { ...I1, revision: 2 } }),
    ];
    expect(first.status).toBe(202);
    expect(first.headers['ratelimit-policy']).toBe('"tenant";q=2;w=1');
    expect(first.headers.ratelimit).toMatch(/^"tenant";r=1;t=1$/);
    expect(second.status).toBe(202);
    expect(third.status).toBe(429);
    expect(third.body.code).toBe('rate_limited');
    expect(third.headers['retry-after']).toBe('1');
    expect(await api.log.head()).toBe(1n);
    expect((await api.submit(SUBMISSION, { key: KEYS.otherTenant })).status).toBe(202);
  });

  it('probes and unknown keys take nothing of it', async () => {
    for (let n = 0; n < 5; n++) {
      expect((await api.call('GET', '/livez', { key: null })).status).toBe(200);
      expect((await api.call('GET', '/v1/capabilities', { key: 'unknown' })).status).toBe(401);
    }
    expect((await api.submit()).status).toBe(202);
  });

  it('a batch costs as much as it holds', async () => {
    const body = [1, 2].map((revision) => ({ ...SUBMISSION, identity: { ...I1, revision } }));
    expect((await api.call('POST', '/v1/operations/batch', { body })).status).toBe(207);
    const next = await api.call('POST', '/v1/operations/batch', { body });
    expect(next.status).toBe(429);
    expect(await api.log.head()).toBe(2n);
  });
});

describe('without one', () => {
  it('nothing is counted', async () => {
    const api = await startApi();
    const answer = await api.submit();
    expect(answer.headers.ratelimit).toBeUndefined();
    await api.close();
  });
});

describe('what can not be read as a request', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  const head = ['GET /v1/capabilities HTTP/1.1', 'host: x', 'connection: close'];

  it('is told so when its headers exceed 16 KiB', async () => {
    const answer = await rawRequest(api.app, [...head, `x-filler: ${'x'.repeat(17 * 1024)}`, '', '']);
    expect(answer.status).toBe(431);
    expect(answer.body.code).toBe('headers_too_large');
    expect(answer.head.toLowerCase()).toContain('content-type: application/problem+json');
  });

  it('is told so when it is no HTTP', async () => {
    const answer = await rawRequest(api.app, ['HELLO', '', '']);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('malformed_request');
  });

  it('is told so when its URL is malformed', async () => {
    const answer = await rawRequest(api.app, [
      'GET /v1/operations/%zz HTTP/1.1',
      ...head.slice(1),
      'authorization: Bearer key-t1-agent',
      '',
      '',
    ]);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('malformed_url');
  });

  it('is refused by length before it is sent whole', async () => {
    const answer = await rawRequest(api.app, [
      'POST /v1/operations HTTP/1.1',
      'host: x',
      'authorization: Bearer key-t1-agent',
      'content-type: application/json',
      `content-length: ${300 * 1024}`,
      'connection: close',
      '',
      '{',
    ]);
    expect(answer.status).toBe(413);
    expect(answer.body.code).toBe('body_too_large');
  });

  it('is refused in chunks as well', async () => {
    const chunk = 'x'.repeat(64 * 1024);
    const answer = await rawRequest(api.app, [
      'POST /v1/operations HTTP/1.1',
      'host: x',
      'authorization: Bearer key-t1-agent',
      'content-type: application/json',
      'transfer-encoding: chunked',
      'connection: close',
      '',
      ...Array.from({ length: 5 }, () => `10000\r\n${chunk}`),
      '0',
      '',
      '',
    ]);
    expect(answer.status).toBe(413);
  });

  it('does not trouble others when the client goes away in the middle', async () => {
    const socket = await openSocket(api.app);
    socket.write(
      'POST /v1/operations HTTP/1.1\r\nhost: x\r\nauthorization: Bearer key-t1-agent\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
    );
    socket.destroy();
    await once(socket, 'close');
    expect((await api.submit()).status).toBe(202);
    expect(await api.log.head()).toBe(1n);
    expect(api.lines.filter((line) => line.includes('"error"'))).toEqual([]);
  });

  it('may not take for ever', () => {
    const server = api.app.getHttpServer();
    expect(server.headersTimeout).toBe(10_000);
    expect(server.requestTimeout).toBe(30_000);
    expect(server.timeout).toBe(60_000);
    expect(server.keepAliveTimeout).toBe(72_000);
    // One more than may be sent, so that too many can be told from just enough.
    expect(server.maxHeadersCount).toBe(101);
    expect(server.maxConnections).toBe(4_000);
  });
});
