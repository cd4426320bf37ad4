import { createServer, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderAdapter, ProviderCall } from '#domain';
import { startLab } from '#apps/provider-lab/src/lab.js';
import { P1 } from '../apps/command-api/support/api.js';
import { LabClient } from '../apps/provider-lab/lab-client.js';
import { call } from '../libs/adapters/providers/provider-fixture.js';
import { answer, hang, raw, reset, ScriptedServer, type Behaviour } from '../libs/adapters/providers/scripted-server.js';
import { resetIt, saysNothing, ScriptedMailServer, type SmtpScript } from '../libs/adapters/providers/smtp-script.js';
import { publicCase } from './registry.js';
import { mailAt, refundsAt } from './support/wired.js';

const refund = (change: Partial<ProviderCall> = {}) => call({ actionType: 'refund.create', payload: P1, ...change });
const notSent = (code: string, reached: boolean, retryAfterMs: number | null = null) => ({ kind: 'not_sent', code, reached, retryAfterMs });
const unknown = (code: string, status: number | null = null) => ({ kind: 'unknown', code, status });
const failed = (code: string) => expect.objectContaining({ kind: 'failed', code });

const wire = { at: new ScriptedServer() };
const open: ProviderAdapter[] = [];
const keep = (adapter: ProviderAdapter) => (open.push(adapter), adapter);
beforeEach(async () => {
  wire.at = new ScriptedServer();
  await wire.at.listen();
});
afterEach(async () => {
  for (const adapter of open.splice(0)) await adapter.close();
  await wire.at.close();
});

describe(publicCase('27'), () => {
  it('an effect and then a 503: one request on the wire, and unknown', async () => {
    let effects = 0;
    const effectThen503: Behaviour = (socket, request) => (effects++, answer(503, '{}')(socket, request));
    wire.at.behaviours = [effectThen503];
    expect(await keep(refundsAt(wire.at.origin)).call(refund())).toEqual(unknown('server_error', 503));
    expect({ effects, requests: wire.at.requests.length }).toEqual({ effects: 1, requests: 1 });
  });

  it('ACCEPT_RESET on a reused keep-alive socket: one call in the lab’s ledger, and unknown', async () => {
    const lab = await startLab({ port: 0, smtpPort: null, ledgerFile: null });
    try {
      const client = new LabClient(lab.url);
      const adapter = keep(refundsAt(`${lab.url}/c`, { keyed: false }));
      expect(await adapter.call(refund({ providerKey: 'first' }))).toMatchObject({ kind: 'succeeded' });
      await client.script({ match: { reference: 'second' }, mode: 'ACCEPT_RESET', times: 0 });
      expect(await adapter.call(refund({ providerKey: 'second' }))).toEqual(unknown('reset'));
      expect(await client.ledger('second')).toMatchObject({ calls: 1, effects: 1 });
    } finally {
      await lab.close();
    }
  });
});

describe(publicCase('28'), () => {
  const table: readonly [seen: string, behaviour: Behaviour, becomes: unknown][] = [
    ['408 declared as not consumed', answer(408, '{}'), notSent('http_408', true)],
    ['429 with Retry-After', answer(429, '{}', ['retry-after: 7']), notSent('http_429', true, 7_000)],
    ['400 declared final', answer(400, '{}'), failed('http_400')],
    ['402 declared final', answer(402, '{}'), failed('http_402')],
    ['404 declared final', answer(404, '{}'), failed('http_404')],
    ['500', answer(500, '{}'), unknown('server_error', 500)],
    ['502', answer(502, '<html>'), unknown('server_error', 502)],
    ['504', answer(504, ''), unknown('server_error', 504)],
    ['2xx with a broken body', answer(201, '{"id":"re_'), unknown('unreadable_response', 201)],
    ['2xx with an empty body', answer(200, ''), unknown('unreadable_response', 200)],
    ['a 307 to another host', answer(307, '', ['location: http://127.0.0.1:1/v1/refunds']), unknown('redirect', 307)],
    ['a time-out after the first body byte', raw('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'), unknown('timeout', 200)],
    ['a time-out before any', hang, unknown('timeout')],
    ['a reset after the body was read', reset, unknown('reset')],
  ];
  it.each(table)('%s', async (seen, behaviour, becomes) => {
    wire.at.behaviours = [behaviour];
    // Only silence is waited out; an answer has all the time that a busy machine needs.
    const timeout = /time-out/.test(seen) ? '1s' : '10s';
    expect(await keep(refundsAt(wire.at.origin, { timeout })).call(refund({ timeoutMs: 10_000 }))).toEqual(becomes);
    expect(wire.at.requests).toHaveLength(1);
  });

  it('DNS failure, refused, TLS failure: nothing can have been sent', async () => {
    expect(await keep(refundsAt('http://provider.invalid', { timeout: '5s' })).call(refund())).toEqual(notSent('dns_failure', false));
    const plain = createServer((socket) => void socket.on('error', () => undefined).once('data', () => socket.end('no TLS\r\n')));
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const { port } = plain.address() as AddressInfo;
    expect(await keep(refundsAt(`https://127.0.0.1:${port}`, { timeout: '2s' })).call(refund())).toEqual(notSent('tls_failure', false));
    await new Promise((resolve) => plain.close(resolve));
    expect(await keep(refundsAt(`http://127.0.0.1:${port}`)).call(refund())).toEqual(notSent('connection_refused', false));
  });

  it('only the capability file says otherwise: what it does not declare is unknown', async () => {
    for (const status of [400, 402, 404, 408, 429]) {
      wire.at.behaviours = [answer(status, '{}')];
      const told = await keep(refundsAt(wire.at.origin, { outcomes: 'outcomes: {}' })).call(refund());
      expect(told).toEqual(unknown('unexpected_status', status));
    }
  });
});

describe(publicCase('30'), () => {
  const smtp = { at: new ScriptedMailServer() };
  beforeEach(async () => {
    smtp.at = new ScriptedMailServer();
    await smtp.at.listen();
  });
  afterEach(() => smtp.at.close());
  const mail = { to: ['p@example.test'], subject: 'Approved', text: 'Application 731' };

  const table: readonly [seen: string, script: SmtpScript, becomes: unknown, stored: number][] = [
    ['the dot taken, the mail stored, and 250 only after the client’s time-out', { dot: saysNothing }, unknown('timeout'), 1],
    ['a reset after the dot', { dot: resetIt }, unknown('reset'), 1],
    ['450 at RCPT', { rcpt: ['450 mailbox busy'] }, notSent('smtp_450', true), 0],
    ['a reset before DATA', { rcpt: [resetIt] }, notSent('connection_lost', false), 0],
  ];
  it.each(table)('%s', async (seen, script, becomes, stored) => {
    smtp.at.script = script;
    // The case's 30 s are one here; the server's 35 s never end.
    expect(
      await keep(mailAt(smtp.at.port, /time-out/.test(seen) ? '1s' : '5s')).call(call({ actionType: 'email.send', payload: mail })),
    ).toEqual(becomes);
    expect(smtp.at.mails).toHaveLength(stored);
    expect(smtp.at.connections).toBe(1);
  });
});
