import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';

const file = fileURLToPath(new URL('../../../../onefold.yaml', import.meta.url));
const env = { LAB_URL: 'http://127.0.0.1:4010', SMTP_URL: 'smtp://127.0.0.1:4011' };

describe('the catalogue of npm start', () => {
  const { actions, providers } = loadCatalogue(file, env);

  it('has an action for each class of the provider lab, and email.send', () => {
    const labActions = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `lab_${name}.payment_order.create`);
    expect([...actions.keys()].sort()).toEqual(['email.send', ...labActions]);
  });

  it('uses the demonstration times: call 2 s, lease 10 s, first look-up 1 s, visibility lag of class D 3 s', () => {
    for (const provider of providers.values()) expect(provider.timeoutMs).toBe(2_000);
    for (const action of actions.values()) expect(action.policy.lease_ms).toBe(10_000);
    const lookups = ['a', 'b', 'c', 'd'].map((name) => actions.get(`lab_${name}.payment_order.create`)!.policy.lookup!);
    expect(lookups.map(({ first_check_ms }) => first_check_ms)).toEqual([1_000, 1_000, 1_000, 1_000]);
    expect(lookups.map(({ visibility_lag_ms }) => visibility_lag_ms)).toEqual([0, 0, 0, 3_000]);
  });

  it('chooses the policy that the table of provider classes asks for', () => {
    const policyOf = (name: string) => actions.get(`lab_${name}.payment_order.create`)!.policy;
    expect(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [name, policyOf(name).same_key?.by ?? null, policyOf(name).on_unknown])).toEqual([
      ['a', 'key', ['same_key_retry', 'lookup', 'review']],
      ['b', 'key', ['lookup', 'same_key_retry', 'review']],
      ['c', null, ['lookup', 'review']],
      ['d', null, ['lookup', 'review']],
      ['e', 'reference', ['same_key_retry', 'review']],
      ['f', null, ['review']],
    ]);
    expect(policyOf('a').same_key).toMatchObject({ retention_ms: 86_400_000, margin_ms: 300_000, repeats_stored_errors: true });
    expect(policyOf('b').same_key).toMatchObject({ retention_ms: 60_000, margin_ms: 6_000, repeats_stored_errors: false });
  });

  it('takes the identity and the payload of the request example, and an optional note and reason', () => {
    const { identity, presentational, validatePayload } = actions.get('lab_a.payment_order.create')!;
    expect(identity).toEqual([
      ['workflow_id', 'step', 'business_object', 'revision'],
      ['event_id', 'operation'],
    ]);
    expect(presentational).toEqual(['/reason']);
    const payload = { account_id: 'acc-1', amount_minor: 125000, currency: 'RUB', business_reference: 'application-731' };
    expect(validatePayload(payload)).toEqual([]);
    expect(validatePayload({ ...payload, note: 'x', reason: 'y' })).toEqual([]);
  });

  it.each([
    ['a decimal string for money', { amount_minor: '40.0' }, '/amount_minor'],
    ['a fraction', { amount_minor: 1.5 }, '/amount_minor'],
    ['nothing', { amount_minor: 0 }, '/amount_minor'],
    ['an integer that a double can not hold', { amount_minor: 9007199254740992 }, '/amount_minor'],
    ['a lower-case currency', { currency: 'usd' }, '/currency'],
    ['an unknown member', { client_ts: '2026-01-05T10:00:01Z' }, '/client_ts'],
    ['no business reference', { business_reference: undefined }, '/business_reference'],
  ])('refuses %s', (_what, change, pointer) => {
    const payload = { account_id: 'acc-1', amount_minor: 125000, currency: 'RUB', business_reference: 'application-731', ...change };
    const { validatePayload } = actions.get('lab_f.payment_order.create')!;
    expect(validatePayload(JSON.parse(JSON.stringify(payload))).map((violation) => violation.pointer)).toEqual([pointer]);
  });

  it('takes a mail and refuses a subject with a line break and more than 50 recipients', () => {
    const { validatePayload } = actions.get('email.send')!;
    const mail = { to: ['p@example.test'], subject: 'Approved', text: 'Hello' };
    expect(validatePayload(mail)).toEqual([]);
    expect(validatePayload({ ...mail, subject: 'a\r\nBcc: q@example.test' })).toHaveLength(1);
    expect(validatePayload({ ...mail, to: Array(51).fill('p@example.test') })).toHaveLength(1);
  });
});
