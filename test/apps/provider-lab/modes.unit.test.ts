import { connect } from 'node:net';
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

const script = (mode: string, more: object = {}) => client.script({ match: { class: 'c' }, mode, ...more });

describe('modes with an answer', () => {
  it.each([
    ['ACCEPT_504', 504, { error: 'gateway_timeout' }, 1],
    ['SAVED_500', 500, { error: 'internal_error' }, 1],
    ['D402', 402, { error: 'declined' }, 0],
    ['IN_PROGRESS', 409, { error: 'in_progress' }, 0],
    ['R429', 429, { error: 'too_many_requests' }, 0],
  ])('%s answers %i', async (mode, status, body, effects) => {
    await script(mode);
    const answer = await client.pay('c', 'k-1', 'app-1');
    expect(answer.status).toBe(status);
    expect(answer.body).toEqual(body);
    const ledger = await client.ledger('k-1');
    expect(ledger).toMatchObject({ calls: 1, effects, entries: [{ mode, status, effect: effects === 1 }] });
    expect((await client.lookUp('c', 'k-1')).body.items).toHaveLength(effects);
    expect((await client.pay('c', 'k-2', 'app-2')).status).toBe(200); // the script is used up
  });

  it('R429 says when to come back', async () => {
    await script('R429');
    await script('R429', { retry_after_seconds: 7 });
    expect((await client.pay('c', 'k-1', 'app-1')).headers.get('retry-after')).toBe('1');
    expect((await client.pay('c', 'k-1', 'app-1')).headers.get('retry-after')).toBe('7');
  });

  it('SAVED_500 may be told to have no effect, and is replayed all the same', async () => {
    await client.script({ match: { class: 'a' }, mode: 'SAVED_500', effect: false });
    expect((await client.pay('a', 'k-1', 'app-1')).status).toBe(500);
    expect((await client.pay('a', 'k-1', 'app-1')).status).toBe(500);
    expect(await client.ledger('k-1')).toMatchObject({ calls: 2, effects: 0 });
  });

  it('D402 is replayed for the same key', async () => {
    await client.script({ match: { class: 'a' }, mode: 'D402' });
    expect((await client.pay('a', 'k-1', 'app-1')).status).toBe(402);
    expect((await client.pay('a', 'k-1', 'app-1')).status).toBe(402);
    expect(await client.ledger('k-1')).toMatchObject({ calls: 2, effects: 0 });
  });

  it.each(['R429', 'IN_PROGRESS'])('%s leaves the key free', async (mode) => {
    await client.script({ match: { class: 'a' }, mode });
    await client.pay('a', 'k-1', 'app-1');
    expect((await client.pay('a', 'k-1', 'app-1')).status).toBe(200);
  });

  it('BROKEN_BODY answers 200 with JSON that ends half-way', async () => {
    await script('BROKEN_BODY');
    const answer = await client.pay('c', 'k-1', 'app-1');
    expect(answer.status).toBe(200);
    expect(answer.text.length).toBeGreaterThan(0);
    expect(answer.body).toBeUndefined();
    expect(await client.ledger('k-1')).toMatchObject({ effects: 1 });
  });

  it('delay_ms holds the answer back, not the effect', async () => {
    await script('OK', { delay_ms: 400 });
    let answered = false;
    const answer = client.pay('c', 'k-1', 'app-1').then((value) => {
      answered = true;
      return value;
    });
    await client.ledgerWithEffects('k-1', 1);
    expect(answered).toBe(false);
    expect((await answer).status).toBe(200);
  });
});

describe('modes without an answer', () => {
  it.each([
    ['ACCEPT_HANG', 1],
    ['HANG', 0],
  ])('%s never answers', async (mode, effects) => {
    await script(mode);
    const giveUp = new AbortController();
    const end = client.payAndLose('c', 'k-1', giveUp.signal);
    expect(await client.ledgerWithCalls('k-1', 1)).toMatchObject({ effects, entries: [{ mode, status: null }] });
    giveUp.abort();
    expect(await end).toBe('ABORT_ERR');
  });

  it.each([
    ['ACCEPT_RESET', 1],
    ['RESET_BEFORE', 0],
  ])('%s resets the connection', async (mode, effects) => {
    await script(mode);
    expect(await client.payAndLose('c', 'k-1')).toBe('ECONNRESET');
    expect(await client.ledger('k-1')).toMatchObject({ calls: 1, effects, entries: [{ mode, status: null }] });
  });

  it('a key whose answer was lost is replayed by a class that honours keys', async () => {
    await client.script({ match: { class: 'a' }, mode: 'ACCEPT_RESET' });
    await client.payAndLose('a', 'k-1');
    await client.script({ match: { class: 'a' }, mode: 'ACCEPT_RESET' });
    await client.payAndLose('a', 'k-1');
    expect(await client.payAndLose('a', 'k-1')).toBe('answered');
    expect(await client.ledger('k-1')).toMatchObject({ calls: 3, effects: 1 });
  });

  it('REFUSE closes at the headers, before any byte of the body', async () => {
    await script('REFUSE');
    const socket = connect(lab.port, '127.0.0.1');
    let received = '';
    socket.on('data', (chunk) => (received += chunk.toString()));
    socket.write('POST /c/v1/payment-orders HTTP/1.1\r\nhost: lab\r\nidempotency-key: k-1\r\ncontent-length: 100\r\n\r\n');
    await new Promise((resolve) => socket.once('close', resolve));
    expect(received).toBe('');
    expect(await client.ledger('k-1')).toMatchObject({ calls: 1, effects: 0, entries: [{ mode: 'REFUSE' }] });
  });

  it('REFUSE can be meant for a business reference', async () => {
    await client.script({ match: { reference: 'ref-k-1' }, mode: 'REFUSE' });
    expect(await client.payAndLose('c', 'k-1')).toBe('ECONNRESET');
    expect(await client.payAndLose('c', 'k-2')).toBe('answered');
    expect(await client.ledger('k-1')).toMatchObject({ calls: 1, effects: 0 });
  });
});

it('REFUSE for a class gives way to a script for the business reference, which only the body tells', async () => {
  await client.script({ match: { class: 'c' }, mode: 'REFUSE' });
  await client.script({ match: { reference: 'app-1' }, mode: 'D402' });
  expect((await client.pay('c', 'k-1', 'app-1')).status).toBe(402);
  expect(await client.payAndLose('c', 'k-2')).toBe('ECONNRESET');
});

describe('LATE_LANDING', () => {
  it('lands when the caller has gone', async () => {
    await script('LATE_LANDING', { delay_ms: 400 });
    const giveUp = new AbortController();
    const end = client.payAndLose('c', 'k-1', giveUp.signal);
    expect(await client.ledgerWithCalls('k-1', 1)).toMatchObject({ effects: 0 });
    expect((await client.lookUp('c', 'k-1')).body.items).toHaveLength(0);
    giveUp.abort();
    await end;
    expect(await client.ledgerWithEffects('k-1', 1)).toMatchObject({ calls: 1, effects: 1, entries: [{ effect: true }] });
    expect((await client.lookUp('c', 'k-1')).body.items).toHaveLength(1);
  });

  it('takes 1.5 s unless told otherwise', async () => {
    const answer = await client.send('PUT', '/lab/script', { mode: 'LATE_LANDING' });
    expect(answer.body.delay_ms).toBe(1500);
  });

  it('doubles with a repeat where keys are ignored, and not where they are honoured', async () => {
    const giveUp = new AbortController();
    for (const name of ['a', 'c']) {
      await client.script({ match: { class: name }, mode: 'LATE_LANDING', delay_ms: 400 });
      void client.payAndLose(name, `k-${name}`, giveUp.signal);
      await client.ledgerWithCalls(`k-${name}`, 1);
    }
    const body = { business_reference: 'ref-k-a', amount_minor: 1, currency: 'EUR' };
    const repeat = await client.send('POST', '/a/v1/payment-orders', body, { 'idempotency-key': 'k-a' });
    expect(repeat.status).toBe(409);
    expect(repeat.body).toEqual({ error: 'in_progress' });
    await client.pay('c', 'k-c', 'ref-k-c');
    expect(await client.ledgerWithEffects('k-c', 2)).toMatchObject({ effects: 2 });
    expect(await client.ledgerWithEffects('k-a', 1)).toMatchObject({ effects: 1 });
    expect((await client.send('POST', '/a/v1/payment-orders', body, { 'idempotency-key': 'k-a' })).status).toBe(200);
    expect(await client.ledger('k-a')).toMatchObject({ calls: 3, effects: 1 });
    giveUp.abort();
  });

  it('is rejected on arrival when class e has the business reference by then', async () => {
    await client.script({ match: { class: 'e' }, mode: 'LATE_LANDING', delay_ms: 400 });
    const giveUp = new AbortController();
    void client.payAndLose('e', 'k-1', giveUp.signal);
    await client.ledgerWithCalls('k-1', 1);
    expect((await client.pay('e', 'k-2', 'ref-k-1')).status).toBe(200);
    while ((await client.ledger()).pending_landings > 0);
    expect(await client.ledger('ref-k-1')).toMatchObject({ calls: 2, effects: 1 });
    giveUp.abort();
  });
});
