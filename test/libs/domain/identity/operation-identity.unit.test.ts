import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deriveIdentity, isOperationId, olderIdentities, payloadHash, payloadHashes, streamOf, type Intent } from '#domain';
import { nodeHashing as hashing } from '#adapters/crypto/hashing.js';

const v1 = { version: 'v1', secret: 'secret-of-january' };
const v2 = { version: 'v2', secret: 'secret-of-july' };
const intent: Intent = {
  tenant: 't1',
  actionType: 'refund.create',
  identity: { workflow_id: 'case-1842', step: 'issue_refund', business_object: 'order-4417', revision: 1 },
};
/** The RFC 8785 text of the intent, written by hand. */
const CANONICAL_INTENT =
  '{"action_type":"refund.create","identity":{"business_object":"order-4417","revision":1,"step":"issue_refund","workflow_id":"case-1842"},"tenant":"t1"}';
const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex');

describe('identity of an operation', () => {
  it('is the HMAC of the canonical intent under the current secret', () => {
    const mac = hmac(v1.secret, CANONICAL_INTENT);
    expect(deriveIdentity(hashing, [v1], intent)).toEqual({
      idempotencyKey: `v1:${mac}`,
      operationId: `op_${mac.slice(0, 32)}`,
      stream: `operation-op_${mac.slice(0, 32)}`,
      providerKey: hashing.uuid5(`v1:${mac}`),
    });
  });

  it('does not depend on the order in which an agent writes the fields', () => {
    const { workflow_id, step, business_object, revision } = intent.identity;
    const turned = { revision: revision!, business_object: business_object!, step: step!, workflow_id: workflow_id! };
    expect(deriveIdentity(hashing, [v1], { ...intent, identity: turned })).toEqual(deriveIdentity(hashing, [v1], intent));
  });

  it.each([
    ['another tenant', { ...intent, tenant: 't2' }],
    ['another action', { ...intent, actionType: 'email.send' }],
    ['another revision', { ...intent, identity: { ...intent.identity, revision: 2 } }],
    ['a string for a number', { ...intent, identity: { ...intent.identity, revision: '1' } }],
    ['another field', { ...intent, identity: { ...intent.identity, part: 1 } }],
  ])('differs for %s (public case 11)', (_, other) => {
    expect(deriveIdentity(hashing, [v1], other).operationId).not.toBe(deriveIdentity(hashing, [v1], intent).operationId);
  });

  it('takes a client key, whatever characters it has, as an identity of its own', () => {
    const { operationId } = deriveIdentity(hashing, [v1], { ...intent, identity: { client_key: 'a "key" with spaces' } });
    expect(isOperationId(operationId)).toBe(true);
  });

  it('gives a client key one operation whatever the action, so that a second action meets the first (public case 11)', () => {
    const named = { ...intent, identity: { client_key: 'k-1' } };
    expect(deriveIdentity(hashing, [v1], named).idempotencyKey).toBe(
      `v1:${hmac(v1.secret, '{"identity":{"client_key":"k-1"},"tenant":"t1"}')}`,
    );
    expect(deriveIdentity(hashing, [v1], { ...named, actionType: 'email.send' })).toEqual(deriveIdentity(hashing, [v1], named));
    expect(deriveIdentity(hashing, [v1], { ...named, tenant: 't2' }).operationId).not.toBe(
      deriveIdentity(hashing, [v1], named).operationId,
    );
  });

  it('finds what older secrets made, so that rotation splits nothing', () => {
    const before = deriveIdentity(hashing, [v1], intent);
    expect(olderIdentities(hashing, [v1], intent)).toEqual([]);
    expect(olderIdentities(hashing, [v2, v1], intent)).toEqual([before]);
    expect(deriveIdentity(hashing, [v2, v1], intent).idempotencyKey).toBe(`v2:${hmac(v2.secret, CANONICAL_INTENT)}`);
  });

  it('needs a secret', () => {
    expect(() => deriveIdentity(hashing, [], intent)).toThrow('identity secret');
  });

  it('gives providers a UUID of version 5 as their key', () => {
    expect(deriveIdentity(hashing, [v1], intent).providerKey).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });

  it.each([
    [`op_${'0'.repeat(32)}`, true],
    [`op_${'0'.repeat(31)}`, false],
    [`op_${'0'.repeat(33)}`, false],
    [`op_${'A'.repeat(32)}`, false],
    [`${'0'.repeat(32)}`, false],
    [`op_${'0'.repeat(32)}\n`, false],
    ["op_' or 1=1 --", false],
  ])('knows %j for an operation id: %s', (text, is) => {
    expect(isOperationId(text)).toBe(is);
  });

  it('names the stream after the operation', () => {
    expect(streamOf('op_1')).toBe('operation-op_1');
  });
});

describe('payload hash', () => {
  const payload = { order_id: '4417', amount_minor: 3800, currency: 'USD', reason: 'damaged item' };
  const hash = (value: unknown, presentational: string[] = []) => payloadHash(hashing, v1, value, presentational);

  it('is keyed, versioned and 64 hex digits long', () => {
    expect(hash(payload)).toMatch(/^hs256-v1:[0-9a-f]{64}$/);
    expect(payloadHash(hashing, { ...v1, secret: 'other' }, payload, [])).not.toBe(hash(payload));
  });

  it('is never the MAC that the same secret makes for an operation id', () => {
    const asPayload = JSON.parse(CANONICAL_INTENT) as unknown;
    expect(hash(asPayload)).not.toContain(hmac(v1.secret, CANONICAL_INTENT));
  });

  it('public case 2: a reworded free text changes it, unless the action declares it presentational', () => {
    const reworded = { ...payload, reason: 'item arrived damaged' };
    expect(hash(reworded)).not.toBe(hash(payload));
    expect(hash(reworded, ['/reason'])).toBe(hash(payload, ['/reason']));
    expect(hash({ ...payload, client_ts: '2026-01-05T10:00:01Z' }, ['/reason'])).not.toBe(hash(payload, ['/reason']));
  });

  it('public case 3: another amount changes it', () => {
    expect(hash({ ...payload, amount_minor: 3900 }, ['/reason'])).not.toBe(hash(payload, ['/reason']));
  });

  it('is made under every secret in force, the current one first', () => {
    expect(payloadHashes(hashing, [v2, v1], payload, ['/reason'])).toEqual([
      payloadHash(hashing, v2, payload, ['/reason']),
      payloadHash(hashing, v1, payload, ['/reason']),
    ]);
  });
});
