import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Lab } from '#apps/provider-lab/src/lab.js';
import { LabClient, newLab } from './lab-client.js';

let lab: Lab;
let client: LabClient;
beforeEach(async () => {
  lab = await newLab();
  client = new LabClient(lab.url);
});
afterEach(() => lab.close());

const statuses = async (name: string, keys: string[]) => {
  const seen: number[] = [];
  for (const key of keys) seen.push((await client.pay(name, key, `ref-${key}`)).status);
  return seen;
};

describe('which script a call meets', () => {
  it('is good for one call unless told otherwise', async () => {
    await client.script({ mode: 'D402' });
    expect(await statuses('c', ['1', '2'])).toEqual([402, 200]);
  });

  it('is good for as many calls as it says', async () => {
    await client.script({ mode: 'D402', times: 2 });
    expect(await statuses('c', ['1', '2', '3'])).toEqual([402, 402, 200]);
  });

  it.each([0, null])('times %s lasts until reset', async (times) => {
    await client.script({ mode: 'D402', times });
    expect(await statuses('c', ['1', '2', '3'])).toEqual([402, 402, 402]);
    await client.send('POST', '/lab/reset');
    expect(await statuses('c', ['4'])).toEqual([200]);
  });

  it('follows the order of arrival', async () => {
    await client.script({ mode: 'D402' });
    await client.script({ mode: 'R429' });
    await client.script({ mode: 'ACCEPT_504' });
    expect(await statuses('c', ['1', '2', '3', '4'])).toEqual([402, 429, 504, 200]);
  });

  it('prefers reference with class, then reference, then class, then all', async () => {
    await client.script({ mode: 'D402' });
    await client.script({ match: { class: 'c' }, mode: 'R429' });
    await client.script({ match: { reference: '1' }, mode: 'ACCEPT_504' });
    await client.script({ match: { reference: '1', class: 'c' }, mode: 'IN_PROGRESS' });
    await client.script({ match: { reference: '1', class: 'd' }, mode: 'SAVED_500' });
    expect(await statuses('c', ['1', '1', '1', '1', '1'])).toEqual([409, 504, 429, 402, 200]);
  });

  it('matches the key or the business reference', async () => {
    await client.script({ match: { reference: 'ref-2' }, mode: 'D402' });
    await client.script({ match: { reference: '3' }, mode: 'D402' });
    expect(await statuses('c', ['1', '2', '3'])).toEqual([200, 402, 402]);
  });

  it('keeps to its class', async () => {
    await client.script({ match: { class: 'd' }, mode: 'D402' });
    expect(await statuses('c', ['1'])).toEqual([200]);
    expect(await statuses('d', ['1'])).toEqual([402]);
  });

  it('gives way to a newer one of the same match when it is unlimited', async () => {
    await client.script({ match: { class: 'c' }, mode: 'D402', times: 0 });
    await client.script({ match: { class: 'c' }, mode: 'R429', times: 1 });
    expect(await statuses('c', ['1', '2'])).toEqual([429, 200]);
  });

  it('is shared exactly by calls that come at once', async () => {
    await client.script({ mode: 'D402', times: 7 });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => client.pay('c', `k-${i}`, `ref-${i}`)));
    expect(answers.filter((answer) => answer.status === 402)).toHaveLength(7);
  });
});

describe('what is refused', () => {
  it.each([
    ['no mode', {}, 'mode'],
    ['an unknown mode', { mode: 'ACCEPT_502' }, 'mode'],
    ['an unknown field', { mode: 'OK', time: 1 }, 'time'],
    ['an unknown match', { mode: 'OK', match: { ref: 'x' } }, 'match.ref'],
    ['an unknown class', { mode: 'OK', match: { class: 'g' } }, 'class'],
    ['an empty reference', { mode: 'OK', match: { reference: '' } }, 'reference'],
    ['a fraction of a time', { mode: 'OK', times: 1.5 }, 'times'],
    ['a negative delay', { mode: 'OK', delay_ms: -1 }, 'delay_ms'],
    ['a delay beyond the hold limit', { mode: 'OK', delay_ms: 600_001 }, 'delay_ms'],
    ['an effect in another mode', { mode: 'OK', effect: false }, 'effect'],
    ['Retry-After in another mode', { mode: 'OK', retry_after_seconds: 1 }, 'retry_after_seconds'],
    ['a mail mode for a class', { mode: 'R451_DATA', match: { class: 'a' } }, 'mode'],
    ['an HTTP mode for mail', { mode: 'R429', match: { class: 'smtp' } }, 'mode'],
    ['a recipient mode by reference', { mode: 'R450_RCPT', match: { reference: 'x' } }, 'match.reference'],
    ['no object', [], 'body'],
  ])('%s', async (_what, body, field) => {
    const answer = await client.send('PUT', '/lab/script', body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ error: 'invalid_request', field, rule: expect.any(String) });
  });

  it('names the allowed values', async () => {
    expect((await client.send('PUT', '/lab/script', { mode: 'x' })).body.allowed).toContain('LATE_LANDING');
    expect((await client.send('PUT', '/lab/script', { mode: 'x', match: { class: 'smtp' } })).body.allowed).toContain('R450_RCPT');
    expect((await client.send('PUT', '/lab/class/c', { key_retention_ms: 1 })).body).toEqual({
      error: 'invalid_request',
      field: 'key_retention_ms',
      rule: 'cannot be set for class c',
      allowed: ['visibility_lag_ms', 'lookup_fault'],
    });
    expect((await client.send('PUT', '/lab/class/c', { lookup_fault: '404' })).body.allowed).toContain('two_matches');
    expect((await client.send('PUT', '/lab/class/g', {})).body).toMatchObject({ field: 'class', allowed: ['a', 'b', 'c', 'd', 'e', 'f'] });
  });

  it('text that is not JSON', async () => {
    expect((await client.send('PUT', '/lab/script', '{"mode"')).body).toMatchObject({ field: 'body' });
    const call = await client.send('POST', '/c/v1/payment-orders', '{"mode"', { 'idempotency-key': 'k-1' });
    expect(call.status).toBe(400);
    expect(await client.ledger('k-1')).toMatchObject({ calls: 1, effects: 0, entries: [{ status: 400 }] });
  });

  it('a body of more than 1 MiB, and not one of exactly 1 MiB', async () => {
    const full = JSON.stringify({ business_reference: 'app-1', note: '' });
    const note = (bytes: number) => JSON.stringify({ business_reference: 'app-1', note: 'x'.repeat(bytes - full.length) });
    expect((await client.send('POST', '/c/v1/payment-orders', note(1 << 20), { 'idempotency-key': 'k-1' })).status).toBe(200);
    expect((await client.send('POST', '/c/v1/payment-orders', note((1 << 20) + 1), { 'idempotency-key': 'k-2' })).status).toBe(413);
    expect(await client.ledger('k-2')).toMatchObject({ calls: 1, effects: 0 });
  });

  it('unknown paths and methods', async () => {
    expect((await client.send('GET', '/')).status).toBe(404);
    expect((await client.send('POST', '/g/v1/payment-orders', {})).body).toMatchObject({ error: 'not_found' });
    expect((await client.send('POST', '/a/v1/loans', {})).status).toBe(404);
    expect((await client.send('GET', '/lab/nothing')).status).toBe(404);
    expect((await client.send('GET', '/lab/script')).status).toBe(405);
    expect((await client.send('DELETE', '/a/v1/payment-orders')).status).toBe(405);
  });
});

it('says that it is well', async () => {
  const answer = await client.send('GET', '/lab/health');
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json');
});
