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

const counts = async (reference: string) => {
  const { calls, effects } = await client.ledger(reference);
  return { calls, effects };
};

describe.each(['a', 'b'])('class %s', (name) => {
  it('answers a repeated key with the first answer and no second effect', async () => {
    const first = await client.pay(name, 'k-1', 'app-1');
    const second = await client.pay(name, 'k-1', 'app-1');
    expect(first.status).toBe(200);
    expect(first.body).toEqual({ id: expect.stringMatching(/^po_/) });
    expect(second.status).toBe(200);
    expect(second.body).toEqual(first.body);
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(await counts('k-1')).toEqual({ calls: 2, effects: 1 });
  });

  it('refuses the key with another body, and with another kind', async () => {
    await client.pay(name, 'k-1', 'app-1');
    const otherBody = await client.pay(name, 'k-1', 'app-1', { amount_minor: 1 });
    expect(otherBody.status).toBe(422);
    expect(otherBody.body).toEqual({ error: 'idempotency_key_reused' });
    const body = { account_id: 'acc-1', amount_minor: 125000, currency: 'RUB', business_reference: 'app-1' };
    expect((await client.send('POST', `/${name}/v1/refunds`, body, { 'idempotency-key': 'k-1' })).status).toBe(422);
    expect(await counts('k-1')).toEqual({ calls: 3, effects: 1 });
  });

  it('forgets a key when its retention has passed, which makes a second effect', async () => {
    await client.pay(name, 'k-1', 'app-1');
    await client.setClass(name, { key_retention_ms: 0 });
    await client.pay(name, 'k-1', 'app-1');
    expect(await counts('k-1')).toEqual({ calls: 2, effects: 2 });
    expect(await client.ledger()).toMatchObject({
      max_effects_per_reference: 2,
      duplicates: [{ class: name, reference: 'k-1', effects: 2 }],
    });
  });

  it('makes an effect for each call without a key', async () => {
    await client.pay(name, null, 'app-1');
    await client.pay(name, null, 'app-1');
    expect(await counts('app-1')).toEqual({ calls: 2, effects: 2 });
  });

  it('makes one effect of a hundred calls at once with one key', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => client.pay(name, 'k-1', 'app-1')));
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(await counts('k-1')).toEqual({ calls: 100, effects: 1 });
  });
});

it('classes a and b differ in what they keep: a stored error in a, only successes in b', async () => {
  for (const name of ['a', 'b']) {
    await client.script({ match: { class: name }, mode: 'SAVED_500' });
    expect((await client.pay(name, `k-${name}`, 'app')).status).toBe(500);
  }
  const again = await client.pay('a', 'k-a', 'app');
  expect(again.status).toBe(500);
  expect(again.body).toEqual({ error: 'internal_error' });
  expect((await client.pay('b', 'k-b', 'app')).status).toBe(200);
  expect(await counts('k-a')).toEqual({ calls: 2, effects: 1 });
  expect(await counts('k-b')).toEqual({ calls: 2, effects: 2 });
});

it('the windows of a and b are 24 h and 60 s, and the lag of d 3 s', async () => {
  const settings = async (name: string) => (await client.send('GET', `/lab/class/${name}`)).body;
  const lookup = { visibility_lag_ms: 0, lookup_fault: 'none' };
  expect(await settings('a')).toEqual({ class: 'a', key_retention_ms: 86_400_000, key_stores: 'all', ...lookup });
  expect(await settings('b')).toEqual({ class: 'b', key_retention_ms: 60_000, key_stores: 'successes', ...lookup });
  expect(await settings('c')).toEqual({ class: 'c', ...lookup });
  expect(await settings('d')).toEqual({ class: 'd', visibility_lag_ms: 3_000, lookup_fault: 'none' });
  expect(await settings('f')).toEqual({ class: 'f' });
});

describe.each(['c', 'd', 'f'])('class %s', (name) => {
  it('ignores keys: a repeat is a second effect with an id of its own', async () => {
    const first = await client.pay(name, 'k-1', 'app-1');
    const second = await client.pay(name, 'k-1', 'app-1');
    expect(second.status).toBe(200);
    expect(second.body.id).not.toBe(first.body.id);
    expect(await counts('k-1')).toEqual({ calls: 2, effects: 2 });
  });
});

it.each(['a', 'b', 'c'])('class %s shows an effect to a look-up at once, by key and by business reference', async (name) => {
  const { id } = (await client.pay(name, 'k-1', 'app-1')).body;
  const item = {
    id,
    reference: 'k-1',
    business_reference: 'app-1',
    amount_minor: 125000,
    currency: 'RUB',
    status: 'done',
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  };
  for (const reference of ['k-1', 'app-1']) {
    const answer = await client.lookUp(name, reference);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ items: [item] });
  }
  expect((await client.lookUp(name, 'k-2')).body).toEqual({ items: [] });
  expect((await client.send('GET', `/${name}/v1/refunds?reference=k-1`)).body).toEqual({ items: [] });
});

it('class d shows an effect only after its lag', async () => {
  await client.pay('d', 'k-1', 'app-1');
  expect((await client.lookUp('d', 'k-1')).body).toEqual({ items: [] });
  await client.setClass('d', { visibility_lag_ms: 0 });
  expect((await client.lookUp('d', 'k-1')).body.items).toHaveLength(1);
});

it('class e rejects a repeated business reference, with any key, and needs one', async () => {
  expect((await client.pay('e', 'k-1', 'app-1')).status).toBe(200);
  const repeat = await client.pay('e', 'k-2', 'app-1');
  expect(repeat.status).toBe(409);
  expect(repeat.body).toEqual({ error: 'duplicate_reference' });
  expect((await client.pay('e', 'k-3', null)).body).toMatchObject({ error: 'invalid_request', field: 'business_reference' });
  expect(await counts('app-1')).toEqual({ calls: 2, effects: 1 });
});

it.each(['e', 'f'])('class %s has no look-up', async (name) => {
  await client.pay(name, 'k-1', 'app-1');
  const answer = await client.lookUp(name, 'k-1');
  expect(answer.status).toBe(405);
  expect(answer.body.error).toBe('no_lookup');
});

describe('look-up faults', () => {
  beforeEach(() => client.pay('c', 'k-1', 'app-1'));

  it.each([
    ['403', 403],
    ['500', 500],
  ])('%s', async (fault, status) => {
    await client.setClass('c', { lookup_fault: fault });
    expect((await client.lookUp('c', 'k-1')).status).toBe(status);
    await client.setClass('c', { lookup_fault: 'none' });
    expect((await client.lookUp('c', 'k-1')).status).toBe(200);
  });

  it('two_matches', async () => {
    await client.setClass('c', { lookup_fault: 'two_matches' });
    const { items } = (await client.lookUp('c', 'k-1')).body;
    expect(items).toHaveLength(2);
    expect(items[0].id).not.toBe(items[1].id);
  });

  it('other_amount', async () => {
    await client.setClass('c', { lookup_fault: 'other_amount' });
    expect((await client.lookUp('c', 'k-1')).body.items[0].amount_minor).not.toBe(125000);
  });

  it('timeout', async () => {
    await client.setClass('c', { lookup_fault: 'timeout' });
    const gaveUp = fetch(`${lab.url}/c/v1/payment-orders?reference=k-1`, { signal: AbortSignal.timeout(100) });
    await expect(gaveUp).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

it('counts look-ups apart from calls', async () => {
  await client.pay('c', 'k-1', 'app-1');
  await client.lookUp('c', 'k-1');
  await client.lookUp('c', 'k-1');
  expect(await client.ledger('k-1')).toMatchObject({ calls: 1, effects: 1, lookups: 2 });
  expect(await client.ledger()).toMatchObject({ calls: 1, lookups: 2 });
});
