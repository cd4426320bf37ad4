import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LookupAnswer, ProviderAdapter } from '#domain';
import { adapterOf, call } from './provider-fixture.js';
import { answer, hang, reset, ScriptedServer, type Behaviour } from './scripted-server.js';

const server = { at: new ScriptedServer() };
let adapter: ProviderAdapter | null = null;

beforeEach(async () => {
  server.at = new ScriptedServer();
  await server.at.listen();
});
afterEach(async () => {
  await adapter?.close();
  await server.at.close();
});

const items = `
lookup:
  request: { path: '/v1/things?reference={provider_key}' }
  consistent: true
  present: /items
  id: /id
  amount: /amount_minor
  refused: { pointer: /status, equals: [refused, cancelled] }
  absent: [404]`;

async function lookUp(lookup: string, behaviour: Behaviour, timeoutMs = 5_000): Promise<LookupAnswer> {
  server.at.behaviours = [behaviour];
  const provider = `kind: http\nbase_url: ${server.at.origin}\nheaders: { authorization: "Bearer t" }\n${lookup}`;
  adapter = adapterOf({ provider, action: 'result: { provider_operation_id: id, keep: [status] }' });
  return adapter.lookUp!(call({ timeoutMs }));
}

const nothing = { code: null, anomaly: null, providerOperationId: null, result: null };
const absent = { ...nothing, verdict: 'absent' };
const inconclusive = (code: string | null, anomaly: string | null = null) => ({ ...nothing, verdict: 'inconclusive', code, anomaly });
const found = (...matches: object[]) => answer(200, JSON.stringify({ items: matches }));
const match = { id: 'po_1', amount_minor: 3800, status: 'done' };

describe('what a look-up tells (design: "What to do with unknown"; public case 32)', () => {
  const present = { ...nothing, verdict: 'present', providerOperationId: 'po_1', result: { status: 'done' } };
  const table: readonly [seen: string, behaviour: Behaviour, told: unknown][] = [
    ['one match', found(match), present],
    ['none', found(), absent],
    ['null where the matches should be', answer(200, '{"items":null}'), absent],
    ['a status declared absent', answer(404, '{}'), absent],
    ['two matches', found(match, match), inconclusive(null, 'two_matches')],
    ['a match with another amount', found({ ...match, amount_minor: 3801 }), inconclusive(null, 'other_amount')],
    ['a match without its amount', found({ id: 'po_1' }), inconclusive('unreadable_response')],
    ['a match without its id', found({ amount_minor: 3800 }), inconclusive('unreadable_response')],
    ['a match with a status declared refused', found({ ...match, status: 'refused' }), { ...nothing, verdict: 'refused', code: 'refused' }],
    ['an answer of another shape', answer(200, '{"error":"later"}'), inconclusive('unreadable_response')],
    ['a broken body', answer(200, '{"items":['), inconclusive('unreadable_response')],
    ['403', answer(403, '{}'), inconclusive('http_403')],
    ['404 is absent only where declared, 410 is not', answer(410, '{}'), inconclusive('http_410')],
    ['500', answer(500, '{}'), inconclusive('http_500')],
    ['a redirect', answer(302, '', ['location: /elsewhere']), inconclusive('http_302')],
    ['a reset', reset, inconclusive('reset')],
  ];

  it.each(table)('%s', async (_seen, behaviour, told) => {
    expect(await lookUp(items, behaviour)).toEqual(told);
    expect(server.at.requests).toHaveLength(1);
  });

  it('silence', async () => {
    expect(await lookUp(items, hang, 100)).toEqual(inconclusive('timeout'));
  });

  it('no connection', async () => {
    const { origin } = server.at;
    await server.at.close();
    server.at = new ScriptedServer();
    await server.at.listen();
    adapter = adapterOf({ provider: `kind: http\nbase_url: ${origin}\n${items}` });
    expect(await adapter.lookUp!(call())).toEqual(inconclusive('connection_refused'));
  });

  it('404 proves nothing where it is not declared', async () => {
    expect(await lookUp(items.replace('absent: [404]', ''), answer(404, '{}'))).toEqual(inconclusive('http_404'));
  });

  it('an object that is there or not', async () => {
    const one = 'lookup: { request: { path: /v1/one }, consistent: true, present: /order, id: /id }';
    expect(await lookUp(one, answer(200, '{"order":{"id":7,"status":"done"}}'))).toEqual({ ...present, providerOperationId: '7' });
    await adapter!.close();
    expect(await lookUp(one, answer(200, '{"order":null}'))).toEqual(absent);
    await adapter!.close();
    expect(await lookUp(one, answer(200, '{}'))).toEqual(inconclusive('unreadable_response'));
  });

  it('a mere yes or no, with the id elsewhere in the answer', async () => {
    const flag = 'lookup: { request: { path: /v1/one }, consistent: true, present: /found, id: /order_id }';
    expect(await lookUp(flag, answer(200, '{"found":true,"order_id":"po_1","status":"done"}'))).toEqual(present);
    await adapter!.close();
    expect(await lookUp(flag, answer(200, '{"found":false}'))).toEqual(absent);
  });
});

describe('the request of a look-up', () => {
  it('is a GET with the reference and the declared headers, without body or key header', async () => {
    await lookUp(`${items}\nidempotency: { retention: 24h }`, found());
    const [seen] = server.at.requests;
    expect(seen).toMatchObject({ method: 'GET', path: `/v1/things?reference=${call().providerKey}`, body: '' });
    expect(seen!.headers).toMatchObject({ authorization: 'Bearer t' });
    expect(seen!.headers).not.toHaveProperty('idempotency-key');
  });

  it('does not exist where none is declared', () => {
    adapter = adapterOf({ provider: 'kind: http\nbase_url: https://api.example.com\nlookup: none' });
    expect(adapter.lookUp).toBeUndefined();
  });
});
