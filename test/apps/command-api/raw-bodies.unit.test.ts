import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startApi, SUBMISSION, type TestApi } from './support/api.js';

/** Bodies as bytes: what a client's serializer would never send, and what it must not be trusted with. */
describe('a body as it arrives', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  const post = (raw: string | Buffer, headers: Record<string, string> = {}) => api.call('POST', '/v1/operations', { raw, headers });
  /** An action without a schema, so that only the text itself is judged. */
  const note = (payload: string, name = 'n') => `{"action_type":"note.write","identity":{"workflow_id":"${name}"},"payload":${payload}}`;
  const nested = (depth: number) => '{"a":'.repeat(depth - 1) + '{}' + '}'.repeat(depth - 1);

  it.each([
    ['not JSON', '{"action_type":', 'malformed_json', ''],
    ['a comment', `{} // {}`, 'malformed_json', ''],
    ['a byte order mark', `\ufeff${JSON.stringify(SUBMISSION)}`, 'malformed_json', ''],
    ['a duplicate member', note('{"a":1,"a":2}'), 'duplicate_member', '/payload/a'],
    ['a duplicate member, escaped', note('{"a":1,"\\u0061":2}'), 'duplicate_member', '/payload/a'],
    ['a lone surrogate', note('{"a":"\\ud800"}'), 'lone_surrogate', '/payload/a'],
    ['an integer that a double rounds (6)', note('{"account":9196877626998784}'), 'number_out_of_range', '/payload/account'],
    ['its neighbour (6)', note('{"account":9196877626998785}'), 'number_out_of_range', '/payload/account'],
    ['an infinite number', note('{"a":1e999}'), 'number_out_of_range', '/payload/a'],
    ['nesting of 33 levels', note(nested(32)), 'too_deep', expect.any(String)],
  ])('is refused with %s', async (_, raw, code, pointer) => {
    const answer = await post(raw);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe(code);
    expect(answer.body.errors[0]).toMatchObject({ code, pointer });
    expect(await api.log.head()).toBe(0n);
  });

  it('may be nested 32 levels deep, the request itself included', async () => {
    expect((await post(note(nested(31)))).status).toBe(202);
  });

  it('is refused when it is not UTF-8', async () => {
    const answer = await post(Buffer.from(note('{"a":"caf\u00e9"}'), 'latin1'));
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('invalid_utf8');
    expect(await api.log.head()).toBe(0n);
  });

  it('takes numbers by their value: 1, 1.0 and 1e0 are equal, and -0 is 0 (5)', async () => {
    const ones = [];
    for (const qty of ['1', '1.0', '1e0']) ones.push(await post(note(`{"qty":${qty}}`)));
    expect(ones.map(({ status }) => status)).toEqual([202, 202, 202]);
    expect(await api.log.head()).toBe(1n);
    for (const qty of ['0', '-0']) expect((await post(note(`{"qty":${qty}}`, 'zero'))).status).toBe(202);
    expect(await api.log.head()).toBe(2n);
  });

  it('takes members in any order, and arrays in theirs (4)', async () => {
    const first = await post(note('{"a":{"x":1,"y":2},"to":["p@example.test","q@example.test"]}'));
    const reordered = await post(note('{"to":["p@example.test","q@example.test"],"a":{"y":2,"x":1}}'));
    const swapped = await post(note('{"to":["q@example.test","p@example.test"],"a":{"y":2,"x":1}}'));
    expect(first.status).toBe(202);
    expect(reordered.headers['idempotent-replayed']).toBe('true');
    expect(swapped.status).toBe(422);
  });

  it('is not normalised: two spellings of one letter differ (7)', async () => {
    expect((await post(note('{"subject":"caf\u00e9"}'))).status).toBe(202);
    expect((await post(note('{"subject":"cafe\u0301"}'))).status).toBe(422);
  });

  it('gives the same operation whatever order its names are in, also beyond the basic plane (7)', async () => {
    await post(note('{"\u{1f600}":1,"\ufb33":2}'));
    expect((await post(note('{"\ufb33":2,"\u{1f600}":1}'))).headers['idempotent-replayed']).toBe('true');
  });

  it('may spell out __proto__ in a payload, and nothing comes of it', async () => {
    expect((await post(note('{"__proto__":{"polluted":1}}'))).status).toBe(202);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it.each(['__proto__', 'constructor', 'toString', 'amount', 'a/b'])('has no member %s', async (name) => {
    const answer = await post(`{"action_type":"note.write","identity":{"workflow_id":"n"},"payload":{},${JSON.stringify(name)}:{}}`);
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([{ pointer: `/${name.replace('/', '~1')}`, code: 'member_unknown' }]);
    expect(await api.log.head()).toBe(0n);
  });

  it('names every member at fault', async () => {
    const answer = await post('{"action_type":7,"source":[]}');
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('request_invalid');
    const places = answer.body.errors.map(({ pointer, code }: { pointer: string; code: string }) => `${pointer} ${code}`).sort();
    expect(places).toEqual(['/action_type member_invalid', '/payload member_missing', '/source member_invalid']);
    for (const error of answer.body.errors) expect(error.way_out).toBeTruthy();
  });

  it.each(['[]', '"text"', '7', 'null'])('is no object but %s', async (raw) => {
    const answer = await post(raw);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('request_invalid');
  });

  it.each([
    [{ nested: { a: 1 } }],
    [{ list: [1] }],
    [{ long: 'x'.repeat(201) }],
    [Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`m${n}`, n]))],
  ])('has a flat and small source', async (source) => {
    const answer = await api.submit({ ...SUBMISSION, source });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([{ pointer: '/source', code: 'member_invalid' }]);
  });

  it('is missing', async () => {
    expect((await api.call('POST', '/v1/operations')).body.code).toBe('body_missing');
    expect((await api.call('POST', '/v1/operations', { headers: { 'content-type': 'application/json' } })).body.code).toBe('body_missing');
  });

  it.each<Record<string, string>>([
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'application/json; charset=utf-16' },
    { 'content-encoding': 'gzip' },
  ])('is refused as %j', async (headers) => {
    const answer = await post(JSON.stringify(SUBMISSION), headers);
    expect(answer.status).toBe(415);
    expect(answer.body.code).toBe('unsupported_media_type');
    expect(await api.log.head()).toBe(0n);
  });

  it('may say that it is UTF-8', async () => {
    expect((await post(JSON.stringify(SUBMISSION), { 'content-type': 'application/json; charset=UTF-8' })).status).toBe(202);
  });

  it('has at most 256 KiB', async () => {
    const wrapper = note('{"a":""}').length;
    const answer = await post(note(`{"a":"${'x'.repeat(256 * 1024 - wrapper + 1)}"}`));
    expect(answer.status).toBe(413);
    expect(answer.body.code).toBe('body_too_large');
    expect(await api.log.head()).toBe(0n);
    expect((await post(note(`{"a":"${'x'.repeat(256 * 1024 - wrapper)}"}`))).status).toBe(202);
  });
});
