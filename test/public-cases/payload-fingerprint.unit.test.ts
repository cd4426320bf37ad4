import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { canonicalJson } from '#domain';
import { I1, P1, startApi, SUBMISSION, type TestApi } from '../apps/command-api/support/api.js';
import { publicCase } from './registry.js';

let api: TestApi;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

/** Posts a payload as text, under an action that declares nothing about it. */
const post = (payload: string, name = 'n', to = api) =>
  to.call('POST', '/v1/operations', { raw: `{"action_type":"note.write","identity":{"workflow_id":"${name}"},"payload":${payload}}` });
const isReplay = (answer: { headers: Readonly<Record<string, unknown>> }) => answer.headers['idempotent-replayed'] === 'true';
const refund = (payload: object, to = api) => to.submit({ ...SUBMISSION, payload });

describe(publicCase('2'), () => {
  it('attaches where the reworded member is declared presentational, on every node', async () => {
    const node = await startApi({ log: api.log, dataKeys: api.dataKeys });
    const first = await refund(P1);
    for (const each of [api, node]) {
      const reworded = await refund({ ...P1, reason: 'item arrived damaged' }, each);
      expect(reworded.body).toMatchObject({ operation_id: first.body.operation_id, payload_hash: first.body.payload_hash });
      expect(isReplay(reworded)).toBe(true);
    }
    expect(await api.log.head()).toBe(1n);
    await node.close();
  });

  it('is refused with both hashes and the original id where it is not declared, the same on every node', async () => {
    const node = await startApi({ log: api.log, dataKeys: api.dataKeys });
    const first = await post('{"order_id":"4417","reason":"damaged item"}');
    const bodies = [];
    for (const each of [api, node]) {
      const second = await post('{"order_id":"4417","reason":"item arrived damaged","client_ts":"2026-01-05T10:00:01Z"}', 'n', each);
      expect(second.status).toBe(422);
      expect(second.body).toMatchObject({ operation_id: first.body.operation_id, stored_payload_hash: first.body.payload_hash });
      expect(second.text).not.toContain('damaged');
      bodies.push(second.body.submitted_payload_hash);
    }
    expect(bodies[0]).toBe(bodies[1]);
    expect(bodies[0]).not.toBe(first.body.payload_hash);
    expect(await api.log.head()).toBe(1n);
    await node.close();
  });

  it('never makes a second operation of an added time stamp', async () => {
    await refund(P1);
    expect((await refund({ ...P1, client_ts: '2026-01-05T10:00:01Z' })).status).toBe(400);
    expect(await api.log.head()).toBe(1n);
  });
});

describe(publicCase('4'), () => {
  it('takes members in any order and at any depth for the same, and elements in another order for another payload', async () => {
    const first = await post('{"a":{"x":1,"y":2},"to":["p@example.test","q@example.test"]}');
    const reordered = await post('{"to":["p@example.test","q@example.test"],"a":{"y":2,"x":1}}');
    const swapped = await post('{"to":["q@example.test","p@example.test"],"a":{"x":1,"y":2}}');
    expect([first.status, reordered.status, swapped.status]).toEqual([202, 202, 422]);
    expect(isReplay(reordered)).toBe(true);
    expect(await api.log.head()).toBe(1n);
  });
});

describe(publicCase('5'), () => {
  it.each([
    ['1, 1.0 and 1e0', ['1', '1.0', '1e0']],
    ['-0 and 0', ['-0', '0']],
  ])('%s are one payload', async (_, spellings) => {
    const answers = [];
    for (const qty of spellings) answers.push(await post(`{"qty":${qty}}`));
    expect(answers.map(({ status }) => status)).toEqual(spellings.map(() => 202));
    expect(answers.slice(1).every(isReplay)).toBe(true);
    expect(new Set(answers.map(({ body }) => body.payload_hash)).size).toBe(1);
  });

  it('0 and 1 are two', async () => {
    await post('{"qty":1}');
    expect((await post('{"qty":0}')).status).toBe(422);
  });
});

describe(publicCase('6'), () => {
  it.each(['9196877626998784', '9196877626998785', '9007199254740992', '-9007199254740992'])(
    '%s is refused as a number',
    async (account) => {
      const answer = await post(`{"account":${account}}`);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ code: 'number_out_of_range', errors: [{ pointer: '/payload/account' }] });
      expect(await api.log.head()).toBe(0n);
    },
  );

  it('the two are different payloads when they come as text, and 2^53-1 is still a number', async () => {
    expect((await post('{"account":"9196877626998784"}')).status).toBe(202);
    expect((await post('{"account":"9196877626998785"}')).status).toBe(422);
    expect((await post('{"account":9007199254740991}', 'largest')).status).toBe(202);
  });
});

describe(publicCase('7'), () => {
  it('é as one character and as two are two payloads: nothing is normalised', async () => {
    expect((await post('{"subject":"caf\u00e9"}')).status).toBe(202);
    expect((await post('{"subject":"cafe\u0301"}')).status).toBe(422);
  });

  it('names are sorted by UTF-16 units: U+1F600 comes before U+FB33 (RFC 8785, section 3.2.3)', async () => {
    expect(canonicalJson({ '\ufb33': 2, '\u{1f600}': 1 })).toBe('{"\u{1f600}":1,"\ufb33":2}');
    await post('{"\u{1f600}":1,"\ufb33":2}');
    expect(isReplay(await post('{"\ufb33":2,"\u{1f600}":1}'))).toBe(true);
  });

  it('an identity with a hyphen that is not ASCII is refused', async () => {
    const answer = await api.submit({ ...SUBMISSION, identity: { ...I1, object: 'application\u2011731' } });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([{ pointer: '/identity/object', code: 'identity_field_value' }]);
    expect(await api.log.head()).toBe(0n);
  });
});

describe(publicCase('9'), () => {
  it('null is not absent', async () => {
    expect((await refund(P1)).status).toBe(202);
    expect((await refund({ ...P1, memo: null })).status).toBe(422);
  });

  const spellings: readonly [member: string, value: unknown][] = [
    ['amount_minor', '40.0'],
    ['amount_minor', '40.00'],
    ['amount_minor', 40.5],
    ['currency', 'usd'],
  ];
  it.each(spellings)('money as %s %j is refused, alone and in a batch', async (member, value) => {
    const body = { ...SUBMISSION, payload: { ...P1, [member]: value } };
    const alone = await api.submit(body);
    const batch = await api.call('POST', '/v1/operations/batch', { body: [body] });
    for (const answer of [alone, batch.body[0]]) {
      expect(answer.status).toBe(400);
      expect(answer.body.errors).toMatchObject([{ pointer: `/payload/${member}` }]);
    }
    expect(await api.log.head()).toBe(0n);
  });

  it('whole minor units and capital letters are taken', async () => {
    expect((await refund({ ...P1, amount_minor: 40 })).status).toBe(202);
  });
});
