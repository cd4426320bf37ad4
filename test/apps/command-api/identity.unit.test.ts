import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streamOf } from '#domain';
import { I1, P1, startApi, SUBMISSION, type TestApi } from './support/api.js';
import { rawRequest } from './support/raw-request.js';

describe('the identity of a submission', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  const identified = (identity: unknown) => api.submit({ action_type: 'note.write', identity, payload: {} });
  const nine = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`field_${'abcdefghi'[n]}`, n]));

  it.each([
    ['a field that differs between runs', { workflow_id: 'w', run_id: 'r-1' }, 'identity_field_run_specific', '/identity/run_id'],
    ['a tool call', { tool_call_id: 'toolu_01' }, 'identity_field_run_specific', '/identity/tool_call_id'],
    ['nine fields', nine, 'identity_too_many_fields', '/identity'],
    ['no field', {}, 'identity_empty', '/identity'],
    ['null', null, 'identity_not_an_object', '/identity'],
    ['a text', 'case-1842', 'identity_not_an_object', '/identity'],
    ['an array', ['case-1842'], 'identity_not_an_object', '/identity'],
    ['a hyphen that is not ASCII (7)', { object: 'application\u2010731' }, 'identity_field_value', '/identity/object'],
    ['a fraction', { revision: 1.5 }, 'identity_field_value', '/identity/revision'],
    ['a truth value', { revision: true }, 'identity_field_value', '/identity/revision'],
    ['the reserved field', { client_key: 'k' }, 'identity_field_reserved', '/identity/client_key'],
    ['a name in capitals', { WorkflowId: 'w' }, 'identity_field_name', '/identity/WorkflowId'],
  ])('is refused with %s', async (_, identity, code, pointer) => {
    const answer = await identified(identity);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('identity_invalid');
    expect(answer.body.errors).toMatchObject([{ code, pointer }]);
    expect(answer.body.errors[0].way_out).toBeTruthy();
    expect(await api.log.head()).toBe(0n);
  });

  it('has exactly the fields that the action declares', async () => {
    const { step: _, ...withoutStep } = I1;
    const answer = await api.submit({ ...SUBMISSION, identity: { ...withoutStep, channel: 'mail' } });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([
      { pointer: '/identity/step', code: 'identity_field_missing' },
      { pointer: '/identity/channel', code: 'identity_field_undeclared' },
    ]);
  });

  it('is told together with what is wrong with the payload', async () => {
    const answer = await api.submit({ ...SUBMISSION, identity: { ...I1, object: 'x y' }, payload: { ...P1, amount_minor: 0 } });
    expect(answer.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(['/identity/object', '/payload/amount_minor']);
  });

  it('is never guessed: with none there is no operation, today or tomorrow (14)', async () => {
    const { identity: _, ...unnamed } = SUBMISSION;
    for (let n = 0; n < 2; n++) {
      const answer = await api.submit(unnamed);
      expect(answer.status).toBe(400);
      expect(answer.body.code).toBe('identity_required');
    }
    expect(await api.log.head()).toBe(0n);
  });

  it('names an action that there is', async () => {
    const answer = await api.submit({ ...SUBMISSION, action_type: 'refund.delete' });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'unknown_action_type', errors: [{ pointer: '/action_type' }] });
  });
});

describe('an Idempotency-Key header (10)', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  const { identity: _, ...unnamed } = SUBMISSION;
  const submit = (key: string) => api.submit(unnamed, { headers: { 'idempotency-key': key } });

  it('is the identity where the body names none', async () => {
    const answer = await submit('k-1');
    expect(answer.status).toBe(202);
    expect(answer.body.identity).toEqual({ client_key: 'k-1' });
    const [planned] = await api.log.readStream(streamOf(answer.body.operation_id));
    expect(planned!.event.data).toMatchObject({ client_key: null });
  });

  it('is the same bare and quoted, and another in capitals', async () => {
    const bare = await submit('k-1');
    const quoted = await submit('"k-1"');
    const capital = await submit('K-1');
    expect(quoted.body.operation_id).toBe(bare.body.operation_id);
    expect(quoted.headers['idempotent-replayed']).toBe('true');
    expect(capital.body.operation_id).not.toBe(bare.body.operation_id);
  });

  it.each([[''], ['   '], ['""'], ['"   "'], ['k'.repeat(256)], ['"open']])('is refused as %j, also beside an identity', async (key) => {
    for (const body of [unnamed, SUBMISSION]) {
      const answer = await api.submit(body, { headers: { 'idempotency-key': key } });
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ code: 'idempotency_key_invalid', errors: [{ header: 'Idempotency-Key' }] });
    }
    expect(await api.log.head()).toBe(0n);
  });

  it('may have 255 characters', async () => {
    expect((await submit('k'.repeat(255))).status).toBe(202);
  });

  it('is data and no header of the answer, whatever it spells', async () => {
    const answer = await submit('k-1; set-cookie: a=b');
    expect(answer.status).toBe(202);
    expect(answer.headers['set-cookie']).toBeUndefined();
    expect((await submit('k-1%0d%0aset-cookie: a=b')).body.code).toBe('idempotency_key_invalid');
  });

  it('is sent once', async () => {
    const body = JSON.stringify(unnamed);
    const answer = await rawRequest(api.app, [
      'POST /v1/operations HTTP/1.1',
      'host: x',
      'authorization: Bearer key-t1-agent',
      'content-type: application/json',
      `content-length: ${body.length}`,
      'idempotency-key: k-1',
      'idempotency-key: k-2',
      'connection: close',
      '',
      body,
    ]);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('idempotency_key_repeated');
    expect(await api.log.head()).toBe(0n);
  });
});
