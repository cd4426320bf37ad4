import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidCursor, streamOf } from '#domain';
import { attemptSucceeded, attemptUnknown, I1, KEYS, startApi, startAttempt, SUBMISSION, type TestApi } from './support/api.js';

let api: TestApi;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

const submitRevision = async (revision: number) =>
  (await api.submit({ ...SUBMISSION, identity: { ...I1, revision } })).body.operation_id as string;

describe('reading an operation', () => {
  it('gives what was just written, whatever the view knows (40i)', async () => {
    const blind = await startApi({ view: { list: () => Promise.reject(new Error('down')) } });
    const { body } = await blind.submit();
    const answer = await blind.call('GET', `/v1/operations/${body.operation_id}`);
    expect(answer.status).toBe(200);
    expect(answer.headers.etag).toBe('"0"');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.body).toEqual(body);
    await blind.close();
  });

  it('is 304 while its revision is one that the caller has', async () => {
    const id = await submitRevision(1);
    const read = (tag: string) => api.call('GET', `/v1/operations/${id}`, { headers: { 'if-none-match': tag } });
    for (const tag of ['"0"', 'W/"0"', '"7", "0"', '*']) {
      const answer = await read(tag);
      expect(answer.status).toBe(304);
      expect(answer.headers.etag).toBe('"0"');
      expect(answer.text).toBe('');
    }
    for (const tag of ['"1"', '0', '""']) expect((await read(tag)).status).toBe(200);
    await api.apply(id, startAttempt());
    expect((await read('"0"')).status).toBe(200);
  });

  it('shows the result unsealed, and says so when its key is destroyed (40k)', async () => {
    const id = await submitRevision(1);
    await api.apply(id, startAttempt(), attemptSucceeded(await api.seal(id, { state: 'booked' })));
    const read = () => api.call('GET', `/v1/operations/${id}`);
    expect((await read()).body).toMatchObject({ status: 'succeeded', result: { state: 'booked' } });
    expect((await read()).body.result_erased).toBeUndefined();
    await api.dataKeys.destroy(id);
    expect((await read()).body).toMatchObject({ status: 'succeeded', result: null, result_erased: true });
    const history = await api.call('GET', `/v1/operations/${id}/events`);
    expect(history.body.chain_valid).toBe(true);
  });

  it('is not found the same way whether it is missing, foreign or no id at all', async () => {
    const id = await submitRevision(1);
    const missing = `op_${'0'.repeat(32)}`;
    const answers = [
      await api.call('GET', `/v1/operations/${id}`, { key: KEYS.otherTenant }),
      await api.call('GET', `/v1/operations/${missing}`, { key: KEYS.otherTenant }),
      await api.call('GET', `/v1/operations/..%2f${id}`, { key: KEYS.otherTenant }),
      await api.call('GET', `/v1/operations/${id}/events`, { key: KEYS.otherTenant }),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(404);
      expect(answer.text).toBe(answers[0]!.text);
    }
  });
});

describe('the events of an operation', () => {
  it('are shown as they are stored, in order, with their chain', async () => {
    const id = await submitRevision(1);
    await api.apply(id, startAttempt(), attemptSucceeded(await api.seal(id, { state: 'booked' })));
    const { status, body } = await api.call('GET', `/v1/operations/${id}/events`);
    expect(status).toBe(200);
    expect(body.operation_id).toBe(id);
    expect(body.chain_valid).toBe(true);
    expect(body.events.map(({ type }: { type: string }) => type)).toEqual(['OperationPlanned', 'AttemptStarted', 'OperationSucceeded']);
    expect(body.events.map(({ revision }: { revision: number }) => revision)).toEqual([0, 1, 2]);
    const stored = await api.log.readStream(streamOf(id));
    expect(body.events[0]).toEqual({
      id: stored[0]!.id,
      type: 'OperationPlanned',
      revision: 0,
      position: '1',
      data: stored[0]!.event.data,
      metadata: stored[0]!.metadata,
      chain: stored[0]!.chain,
    });
    expect(body.events[0].data.payload).toMatch(/^s1\./);
    expect(body.events[2].data.result).toMatch(/^s1\./);
    expect(body).not.toHaveProperty('as_of');
  });

  it('show a chain that does not hold', async () => {
    const id = await submitRevision(1);
    const readStream = async (stream: string) =>
      (await api.log.readStream(stream)).map((event) => ({ ...event, metadata: { ...event.metadata, actor: 'somebody else' } }));
    const forged = await startApi({ log: Object.assign(Object.create(api.log) as TestApi['log'], { readStream }) });
    expect((await forged.call('GET', `/v1/operations/${id}/events`)).body.chain_valid).toBe(false);
    await forged.close();
  });

  it('give the state as of a moment', async () => {
    let nowMs = Date.parse('2026-01-05T10:00:00Z');
    const timed = await startApi({ clock: { nowMs: () => nowMs } });
    const id = (await timed.submit()).body.operation_id;
    nowMs += 60_000;
    await timed.apply(id, startAttempt());
    nowMs += 1_000;
    await timed.apply(id, attemptUnknown());
    const at = async (time: string) => (await timed.call('GET', `/v1/operations/${id}/events?at=${encodeURIComponent(time)}`)).body;
    expect((await at('2026-01-05T09:59:59Z')).as_of).toBeNull();
    expect((await at('2026-01-05T10:00:30Z')).as_of).toMatchObject({ status: 'planned', revision: 0, guidance: { state: 'in_progress' } });
    expect((await at('2026-01-05T13:01:00.500+03:00')).as_of).toMatchObject({ status: 'executing', revision: 1 });
    const last = await at('2026-01-05T10:01:01Z');
    expect(last.as_of).toMatchObject({ status: 'unknown', revision: 2, guidance: { state: 'unconfirmed', retry_after_seconds: 1 } });
    expect(last.at).toBe('2026-01-05T10:01:01.000Z');
    expect(last.events).toHaveLength(3);
    await timed.close();
  });

  it.each(['yesterday', '2026-01-05', '2026-13-05T10:00:00Z', '2026-01-05T10:00:00', '1767607200'])('refuse the moment %j', async (at) => {
    const id = await submitRevision(1);
    const answer = await api.call('GET', `/v1/operations/${id}/events?at=${at}`);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'query_invalid', errors: [{ parameter: 'at', code: 'parameter_invalid' }] });
  });
});

describe('listing operations', () => {
  it('goes through all of them page by page', async () => {
    const ids: string[] = [];
    for (let revision = 1; revision <= 5; revision++) ids.unshift(await submitRevision(revision));
    await api.submit({ ...SUBMISSION }, { key: KEYS.otherTenant });
    const seen: string[] = [];
    let url = '/v1/operations?action_type=refund.create&limit=2';
    for (let page = 1; page <= 3; page++) {
      const { status, body, headers } = await api.call('GET', url);
      expect(status).toBe(200);
      seen.push(...body.operations.map(({ operation_id }: { operation_id: string }) => operation_id));
      expect(body.has_more).toBe(page < 3);
      expect(body.next_cursor === null).toBe(page === 3);
      const link = /^<([^>]+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1];
      expect(link === undefined).toBe(page === 3);
      if (link) {
        expect(new URL(link, 'http://x').searchParams.get('cursor')).toBe(body.next_cursor);
        expect(new URL(link, 'http://x').searchParams.get('action_type')).toBe('refund.create');
        url = link;
      }
    }
    expect(seen).toEqual(ids);
  });

  it('unseals the results of a page', async () => {
    const [first, second] = [await submitRevision(1), await submitRevision(2)];
    await api.apply(first, startAttempt(), attemptSucceeded(await api.seal(first, { n: 1 })));
    await api.apply(second, startAttempt(), attemptSucceeded(await api.seal(second, { n: 2 })));
    await api.dataKeys.destroy(first);
    const { body } = await api.call('GET', '/v1/operations?status=succeeded');
    expect(body.operations).toMatchObject([
      { operation_id: second, result: { n: 2 } },
      { operation_id: first, result: null, result_erased: true },
    ]);
  });

  it('hands the filters to the view, of its own tenant only', async () => {
    const queries: unknown[] = [];
    const listed = await startApi({ view: { list: async (query) => (queries.push(query), { operations: [], nextCursor: null }) } });
    await listed.call('GET', '/v1/operations?status=unknown&action_type=note.write&workflow_id=w-1&q=order-1&cursor=c&limit=7');
    await listed.call('GET', '/v1/operations', { key: KEYS.otherTenant });
    expect(queries).toEqual([
      { tenant: 't1', status: 'unknown', actionType: 'note.write', workflowId: 'w-1', term: 'order-1', cursor: 'c', limit: 7 },
      { tenant: 't2', status: null, actionType: null, workflowId: null, term: null, cursor: null, limit: 20 },
    ]);
    await listed.close();
  });

  it.each([
    ['status=open', 'status', 'parameter_invalid'],
    ['limit=0', 'limit', 'parameter_invalid'],
    ['limit=101', 'limit', 'parameter_invalid'],
    ['limit=ten', 'limit', 'parameter_invalid'],
    ['q=', 'q', 'parameter_invalid'],
    ['limit=1&limit=2', 'limit', 'parameter_repeated'],
    ['offset=10', 'offset', 'parameter_unknown'],
    ['tenant=t2', 'tenant', 'parameter_unknown'],
  ])('refuses ?%s by name', async (query, parameter, code) => {
    const answer = await api.call('GET', `/v1/operations?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'query_invalid', errors: [{ parameter, code }] });
  });

  it('refuses a cursor that the view does not know', async () => {
    const strict = await startApi({ view: { list: () => Promise.reject(new InvalidCursor('bad')) } });
    const answer = await strict.call('GET', '/v1/operations?cursor=made-up');
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([{ parameter: 'cursor', code: 'parameter_invalid' }]);
    await strict.close();
  });

  it('is 503 while the view is not there; operations are still read and taken', async () => {
    const blind = await startApi({ view: { list: () => Promise.reject(new Error('relation "secret" does not exist')) } });
    const answer = await blind.call('GET', '/v1/operations');
    expect(answer.status).toBe(503);
    expect(answer.body.code).toBe('view_unavailable');
    expect(answer.text).not.toContain('secret');
    expect((await blind.submit()).status).toBe(202);
    await blind.close();
  });
});
