import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { I1, KEYS, P1, startApi, SUBMISSION, type TestApi } from '../apps/command-api/support/api.js';
import { rawRequest } from '../apps/command-api/support/raw-request.js';
import { publicCase } from './registry.js';

let api: TestApi;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

const { identity: _, ...unnamed } = SUBMISSION;
const withKey = (key: string, body: unknown = unnamed, more: { key?: string } = {}) =>
  api.submit(body, { headers: { 'idempotency-key': key }, ...more });

/** Posts with header lines as they are on the wire. */
function rawWith(headers: readonly string[], body: object = unnamed) {
  const text = JSON.stringify(body);
  const fixed = ['POST /v1/operations HTTP/1.1', 'host: x', `authorization: Bearer ${KEYS.agent}`, 'content-type: application/json'];
  return rawRequest(api.app, [...fixed, `content-length: ${text.length}`, ...headers, 'connection: close', '', text]);
}

describe(publicCase('10'), () => {
  it('"k-1" and k-1 are one key, K-1 is another', async () => {
    const [quoted, bare, capital] = [await withKey('"k-1"'), await withKey('k-1'), await withKey('K-1')];
    expect(bare.body.operation_id).toBe(quoted.body.operation_id);
    expect(capital.body.operation_id).not.toBe(quoted.body.operation_id);
  });

  it.each([
    ['empty', ['idempotency-key:']],
    ['three spaces', ['idempotency-key:    ']],
    ['three spaces in quotes', ['idempotency-key: "   "']],
    ['256 characters', [`idempotency-key: ${'k'.repeat(256)}`]],
    ['two headers', ['idempotency-key: k-1', 'idempotency-key: k-1']],
    ['a line break in percent signs', ['idempotency-key: k-1..%0d%0aset-cookie: a=b']],
  ])('%s is refused, with and without business fields beside it: there is no unprotected way', async (_what, headers) => {
    for (const body of [unnamed, SUBMISSION]) {
      const answer = await rawWith(headers, body);
      expect(answer.status).toBe(400);
      expect(answer.body.code).toMatch(/^idempotency_key_/);
    }
    expect(await api.log.head()).toBe(0n);
  });

  it('a real line break ends the header, and what follows is no part of the key', async () => {
    const answer = await rawWith(['idempotency-key: k-1', 'x-injected: yes']);
    expect(answer.body.identity).toEqual({ client_key: 'k-1' });
  });
});

describe(publicCase('11'), () => {
  it('(a) two tenants with the same key and body have two operations, and neither reads the other’s', async () => {
    const mine = await withKey('k-1');
    const theirs = await withKey('k-1', unnamed, { key: KEYS.otherTenant });
    expect(theirs.status).toBe(202);
    expect(theirs.body.operation_id).not.toBe(mine.body.operation_id);
    const read = (id: string, key: string) => api.call('GET', `/v1/operations/${id}`, { key });
    expect((await read(mine.body.operation_id, KEYS.otherTenant)).status).toBe(404);
    expect((await read(theirs.body.operation_id, KEYS.agent)).status).toBe(404);
    expect(theirs.text).not.toContain(mine.body.operation_id);
  });

  it('(b) a caller whose credential was rotated attaches', async () => {
    const first = await withKey('k-1');
    const again = await withKey('k-1', unnamed, { key: KEYS.agentRotated });
    expect(again.body.operation_id).toBe(first.body.operation_id);
    expect(again.headers['idempotent-replayed']).toBe('true');
  });

  it('(c) the same key for another action is refused, and the first stays as it is', async () => {
    const note = { action_type: 'note.write', payload: { text: 'x' } };
    const refund = await withKey('k-1');
    const written = await withKey('k-1', note);
    expect(written).toMatchObject({ status: 422, body: { code: 'action_mismatch', operation_id: refund.body.operation_id } });
    expect(await withKey('k-1')).toMatchObject({ status: 202, body: { operation_id: refund.body.operation_id } });
    expect(await api.log.head()).toBe(1n);
  });

  it('(c) a key beside business fields is only recorded: the fields decide', async () => {
    const refund = await withKey('k-1', SUBMISSION);
    const note = await withKey('k-1', { action_type: 'note.write', identity: I1, payload: { text: 'x' } });
    expect(note.status).toBe(202);
    expect(note.body.operation_id).not.toBe(refund.body.operation_id);
  });
});

describe(publicCase('12'), () => {
  it('leaves no trace: the corrected request under the same key is accepted', async () => {
    const refused = await withKey('k-1', { ...SUBMISSION, payload: { ...P1, amount_minor: '38' } });
    expect(refused.status).toBe(400);
    expect(await api.log.head()).toBe(0n);
    const accepted = await withKey('k-1', SUBMISSION);
    expect(accepted.status).toBe(202);
    expect(accepted.headers['idempotent-replayed']).toBeUndefined();
  });

  it('nor does it where the key itself is the identity', async () => {
    expect((await withKey('k-1', { ...unnamed, payload: { ...P1, amount_minor: '38' } })).status).toBe(400);
    const accepted = await withKey('k-1');
    expect(accepted).toMatchObject({ status: 202, body: { identity: { client_key: 'k-1' } } });
  });
});

describe(publicCase('14'), () => {
  it('a command without an identity is refused, a moment before midday and a moment after', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      for (const now of ['2026-01-05T11:59:59.900Z', '2026-01-05T12:00:00.100Z']) {
        vi.setSystemTime(new Date(now));
        const answer = await api.submit(unnamed);
        expect(answer.status).toBe(400);
        expect(answer.body.code).toBe('identity_required');
      }
    } finally {
      vi.useRealTimers();
    }
    expect(await api.log.head()).toBe(0n);
  });

  it('one with an identity has the same name at both moments', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      vi.setSystemTime(new Date('2026-01-05T11:59:59.900Z'));
      const before = await api.submit({ ...SUBMISSION, identity: I1 });
      vi.setSystemTime(new Date('2026-01-05T12:00:00.100Z'));
      expect((await api.submit({ ...SUBMISSION, identity: I1 })).body.operation_id).toBe(before.body.operation_id);
    } finally {
      vi.useRealTimers();
    }
  });
});
