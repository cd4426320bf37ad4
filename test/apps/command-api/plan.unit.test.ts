import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogUnavailable, streamOf, type AttemptLane, type ClaimedAttempt } from '#domain';
import { attemptSucceeded, attemptUnknown, I1, KEYS, P1, startApi, startAttempt, SUBMISSION, type TestApi } from './support/api.js';

describe('submitting an operation', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  it('is recorded once and answered with 202 and its place', async () => {
    const answer = await api.submit();
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({ status: 'planned', tenant: 't1', action_type: 'refund.create', identity: I1, revision: 0 });
    expect(answer.body.operation_id).toMatch(/^op_[0-9a-f]{32}$/);
    expect(answer.body.guidance).toMatchObject({ state: 'in_progress', same_identity: 'attaches', new_operation: false });
    expect(answer.headers.location).toBe(`/v1/operations/${answer.body.operation_id}`);
    expect(answer.headers.etag).toBe('"0"');
    expect(answer.headers['idempotent-replayed']).toBeUndefined();
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(await api.log.head()).toBe(1n);
  });

  it('stores the payload sealed and the provenance beside it', async () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const source = { channel: 'agent', run_id: 'r-77', event_id: null };
    const { body } = await api.submit({ ...SUBMISSION, source }, { headers: { traceparent, 'idempotency-key': '"alias-1"' } });
    const [planned] = await api.log.readStream(streamOf(body.operation_id));
    expect(JSON.stringify(planned!.event)).not.toMatch(/damaged item|3800/);
    expect(planned!.event.data).toMatchObject({ source, client_key: 'alias-1', identity: I1 });
    expect(planned!.metadata).toMatchObject({ tenant: 't1', traceparent, causation: null });
    expect(planned!.metadata.actor).toMatch(/^agent:[0-9a-f]{12}$/);
    expect(body.source).toEqual(source);
  });

  it('drops a traceparent that is none', async () => {
    const { body } = await api.submit(SUBMISSION, { headers: { traceparent: '00-00000000000000000000000000000000-00f067aa0ba902b7-01' } });
    const [planned] = await api.log.readStream(streamOf(body.operation_id));
    expect(planned!.metadata.traceparent).toBeNull();
  });

  describe('again with the same identity', () => {
    it('attaches while it is not finished: 202, no second stream, whatever key the client made up (public case 1)', async () => {
      const first = await api.submit(SUBMISSION, { headers: { 'idempotency-key': 'aaaa' } });
      const second = await api.submit(SUBMISSION, { headers: { 'idempotency-key': 'bbbb' } });
      expect(second.status).toBe(202);
      expect(second.headers['idempotent-replayed']).toBe('true');
      expect(second.body.operation_id).toBe(first.body.operation_id);
      expect(await api.log.head()).toBe(1n);
    });

    it.each([
      ['succeeded', [startAttempt(), attemptSucceeded(null)]],
      ['unknown', [startAttempt(), attemptUnknown()]],
      ['failed_final', [{ type: 'CancelOperation', reason: 'x' } as const]],
    ])('answers 200 once it is %s', async (status, commands) => {
      const { body } = await api.submit();
      await api.apply(body.operation_id, ...commands);
      const again = await api.submit();
      expect(again.status).toBe(200);
      expect(again.headers['idempotent-replayed']).toBe('true');
      expect(again.body.status).toBe(status);
    });

    it('gives the stored result', async () => {
      const { body } = await api.submit();
      const result = await api.seal(body.operation_id, { state: 'booked' });
      await api.apply(body.operation_id, startAttempt(), attemptSucceeded(result));
      const again = await api.submit();
      expect(again.body).toMatchObject({ status: 'succeeded', result: { state: 'booked' }, provider_operation_id: 'pay_1' });
    });

    it('is the same for a caller whose credential was rotated (11b)', async () => {
      const first = await api.submit();
      const again = await api.submit(SUBMISSION, { key: KEYS.agentRotated });
      expect(again.body.operation_id).toBe(first.body.operation_id);
      expect(again.headers['idempotent-replayed']).toBe('true');
    });

    it('is another operation for another tenant (11a)', async () => {
      const first = await api.submit();
      const other = await api.submit(SUBMISSION, { key: KEYS.otherTenant });
      expect(other.status).toBe(202);
      expect(other.headers['idempotent-replayed']).toBeUndefined();
      expect(other.body.operation_id).not.toBe(first.body.operation_id);
      expect((await api.call('GET', `/v1/operations/${other.body.operation_id}`)).status).toBe(404);
    });

    it('is one stream for 200 submissions at once', async () => {
      const answers = await Promise.all(Array.from({ length: 200 }, () => api.submit()));
      expect(new Set(answers.map(({ body }) => body.operation_id)).size).toBe(1);
      expect(answers.every(({ status }) => status === 202)).toBe(true);
      expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1);
      expect(await api.log.head()).toBe(1n);
    });
  });

  describe('with another payload', () => {
    it('is refused with both hashes and never the other payload; the original stays (3)', async () => {
      const first = await api.submit();
      await api.apply(first.body.operation_id, startAttempt(), attemptSucceeded(null));
      const before = await api.log.head();
      const other = await api.submit({ ...SUBMISSION, payload: { ...P1, amount_minor: 3900 } });
      expect(other.status).toBe(422);
      expect(other.body).toMatchObject({
        code: 'payload_mismatch',
        type: 'urn:onefold:error:payload_mismatch',
        operation_id: first.body.operation_id,
        stored_payload_hash: first.body.payload_hash,
        status: 422,
        operation_status: 'succeeded',
        guidance: { state: 'done' },
      });
      expect(other.body.submitted_payload_hash).toMatch(/^hs256-v1:[0-9a-f]{64}$/);
      expect(other.body.submitted_payload_hash).not.toBe(first.body.payload_hash);
      expect(other.text).not.toContain('3800');
      expect(await api.log.head()).toBe(before);
    });

    it('is a new operation under a new revision (3)', async () => {
      const first = await api.submit();
      const next = await api.submit({ ...SUBMISSION, identity: { ...I1, revision: 2 }, payload: { ...P1, amount_minor: 3900 } });
      expect(next.status).toBe(202);
      expect(next.body.operation_id).not.toBe(first.body.operation_id);
    });

    it('is the same where only presentational text differs (2)', async () => {
      await api.submit();
      const reworded = await api.submit({ ...SUBMISSION, payload: { ...P1, reason: 'item arrived damaged' } });
      expect(reworded.status).toBe(202);
      expect(reworded.headers['idempotent-replayed']).toBe('true');
    });

    it('is refused by its schema where a member is not declared (2)', async () => {
      const answer = await api.submit({ ...SUBMISSION, payload: { ...P1, client_ts: '2026-01-05T10:00:01Z' } });
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({
        code: 'payload_invalid',
        errors: [{ pointer: '/payload/client_ts', code: 'payload_violation' }],
      });
    });

    it('tells null from absent (9)', async () => {
      await api.submit();
      expect((await api.submit({ ...SUBMISSION, payload: { ...P1, memo: null } })).status).toBe(422);
    });

    it.each([{ amount_minor: '40.0' }, { amount_minor: '40.00' }, { amount_minor: 40.5 }, { currency: 'usd' }])(
      'refuses money spelled as %j (9)',
      async (part) => {
        const answer = await api.submit({ ...SUBMISSION, payload: { ...P1, ...part } });
        expect(answer.status).toBe(400);
        expect(answer.body.errors[0].pointer).toBe(`/payload/${Object.keys(part)[0]}`);
      },
    );
  });

  it('leaves no trace when it is refused: the corrected request is accepted (12)', async () => {
    const headers = { 'idempotency-key': 'k-1' };
    const refused = await api.submit({ ...SUBMISSION, payload: { ...P1, amount_minor: '38' } }, { headers });
    expect(refused.status).toBe(400);
    expect(await api.log.head()).toBe(0n);
    const accepted = await api.submit(SUBMISSION, { headers });
    expect(accepted.status).toBe(202);
    expect(accepted.headers['idempotent-replayed']).toBeUndefined();
  });

  describe('with a rotated identity secret (11d)', () => {
    const v1 = { version: 'v1', secret: 'identity-secret-1' };
    const v2 = { version: 'v2', secret: 'identity-secret-2' };

    it('finds what was planned under the older one, and its stored provider key', async () => {
      const first = await api.submit();
      const rotated = await startApi({ log: api.log, dataKeys: api.dataKeys, identitySecrets: [v2, v1] });
      const again = await rotated.submit();
      expect(again.headers['idempotent-replayed']).toBe('true');
      expect(again.body.operation_id).toBe(first.body.operation_id);
      expect((await rotated.submit({ ...SUBMISSION, payload: { ...P1, amount_minor: 1 } })).status).toBe(422);
      const fresh = await rotated.submit({ ...SUBMISSION, identity: { ...I1, revision: 9 } });
      expect(fresh.body.idempotency_key).toMatch(/^v2:/);
      expect(await api.log.head()).toBe(2n);
      await rotated.close();
    });
  });

  describe('when the log is not there (16)', () => {
    const failing = (api: TestApi, part: 'append' | 'readStreams'): TestApi['log'] =>
      Object.assign(Object.create(api.log) as TestApi['log'], {
        [part]: () => Promise.reject(new LogUnavailable('connection lost')),
      });

    it('is answered with 503 and nothing is dispatched', async () => {
      const lane = new RecordingLane();
      const broken = await startApi({ log: failing(api, 'append'), lane });
      const answer = await broken.submit();
      expect(answer.status).toBe(503);
      expect(answer.body).toMatchObject({ code: 'log_unavailable' });
      expect(answer.headers['retry-after']).toBe('1');
      expect(lane).toMatchObject({ reserved: 1, released: 1, ran: [] });
      expect(await api.log.head()).toBe(0n);
      await broken.close();
    });

    it('is answered with 503 as well when an older identity can not be looked for', async () => {
      const secrets = ['v2', 'v1'].map((version) => ({ version, secret: version }));
      const broken = await startApi({ log: failing(api, 'readStreams'), identitySecrets: secrets });
      expect((await broken.submit()).status).toBe(503);
      expect(await api.log.head()).toBe(0n);
      await broken.close();
    });
  });

  describe('with a dispatcher beside it', () => {
    it('plans and claims in one append, and hands the attempt over', async () => {
      const lane = new RecordingLane();
      const beside = await startApi({ lane });
      const { body } = await beside.submit();
      expect(body).toMatchObject({ status: 'executing', attempt_count: 1, revision: 1 });
      expect(lane).toMatchObject({ reserved: 1, released: 0 });
      expect(lane.ran).toHaveLength(1);
      expect(lane.ran[0]!.payload).toEqual(P1);
      expect(lane.ran[0]!.operation.state).toMatchObject({ status: 'executing', worker: 'lane-worker' });
      const { payload } = lane.ran[0]!.operation;
      expect(beside.deps.sealer.open(lane.ran[0]!.dataKey, payload!, `${streamOf(body.operation_id)}/payload`)).toBe(JSON.stringify(P1));
      await beside.close();
    });

    it('gives the slot back for a repeat and for a mismatch', async () => {
      const lane = new RecordingLane();
      const beside = await startApi({ lane });
      await beside.submit();
      await beside.submit();
      await beside.submit({ ...SUBMISSION, payload: { ...P1, amount_minor: 1 } });
      expect(lane).toMatchObject({ reserved: 3, released: 2 });
      expect(lane.ran).toHaveLength(1);
      await beside.close();
    });

    it('makes one attempt of 200 submissions at once, and accounts for each slot', async () => {
      const lane = new RecordingLane();
      const beside = await startApi({ lane });
      await Promise.all(Array.from({ length: 200 }, () => beside.submit()));
      expect(lane).toMatchObject({ reserved: 200, released: 199 });
      expect(lane.ran).toHaveLength(1);
      await beside.close();
    });

    it('only plans while the lane is full', async () => {
      const lane: AttemptLane = { reserve: () => null };
      const beside = await startApi({ lane });
      expect((await beside.submit()).body).toMatchObject({ status: 'planned', attempt_count: 0 });
      await beside.close();
    });
  });

  describe('in a batch', () => {
    const of = (revision: number) => ({ ...SUBMISSION, identity: { ...I1, revision } });

    it('gives each its own result, in order', async () => {
      await api.submit(of(1));
      const bodies = [of(1), of(2), { ...of(3), payload: {} }, { ...of(1), payload: { ...P1, amount_minor: 1 } }, 7, of(4)];
      const answer = await api.call('POST', '/v1/operations/batch', { body: bodies });
      expect(answer.status).toBe(207);
      expect(answer.body.map((item: { status: number }) => item.status)).toEqual([202, 202, 400, 422, 400, 202]);
      expect(answer.body[0].headers).toMatchObject({ 'idempotent-replayed': 'true' });
      expect(answer.body[1].headers.location).toBe(`/v1/operations/${answer.body[1].body.operation_id}`);
      expect(answer.body[2].body).toMatchObject({ code: 'payload_invalid' });
      expect(answer.body[3].body).toMatchObject({ code: 'payload_mismatch' });
      expect(await api.log.head()).toBe(3n);
    });

    it('is one operation where two elements ask for the same', async () => {
      const answer = await api.call('POST', '/v1/operations/batch', { body: Array.from({ length: 100 }, () => of(1)) });
      expect(answer.status).toBe(207);
      expect(new Set(answer.body.map((item: { body: { operation_id: string } }) => item.body.operation_id)).size).toBe(1);
      expect(await api.log.head()).toBe(1n);
    });

    it.each([[[]], [Array.from({ length: 101 }, () => of(1))], [{ operations: [] }]])('takes 1 to 100 elements', async (body) => {
      const answer = await api.call('POST', '/v1/operations/batch', { body });
      expect(answer.status).toBe(400);
      expect(answer.body.code).toBe('request_invalid');
      expect(await api.log.head()).toBe(0n);
    });

    it('asks each element for its own identity; the header names none of them', async () => {
      const { identity: _, ...unnamed } = SUBMISSION;
      const answer = await api.call('POST', '/v1/operations/batch', { body: [unnamed], headers: { 'idempotency-key': 'k-1' } });
      expect(answer.body[0]).toMatchObject({ status: 400, body: { code: 'identity_required' } });
    });
  });

  it('counts what became of submissions', async () => {
    await api.submit();
    await api.submit();
    await api.submit({});
    const text = await api.deps.metrics.registry.metrics();
    for (const result of ['planned', 'replayed', 'refused']) expect(text).toContain(`onefold_operations_total{result="${result}"} 1`);
  });
});

/** A lane that is never full, and remembers. */
class RecordingLane implements AttemptLane {
  reserved = 0;
  released = 0;
  readonly ran: ClaimedAttempt[] = [];

  reserve() {
    this.reserved++;
    return {
      worker: 'lane-worker',
      run: (claimed: ClaimedAttempt) => void this.ran.push(claimed),
      release: () => void this.released++,
    };
  }
}

it('derives the same operation on every node', async () => {
  const nodes = await Promise.all([startApi(), startApi({ newId: () => randomUUID() })]);
  const [first, second] = await Promise.all(nodes.map((node) => node.submit()));
  expect(first!.body.operation_id).toBe(second!.body.operation_id);
  expect(first!.body.payload_hash).toBe(second!.body.payload_hash);
  await Promise.all(nodes.map((node) => node.close()));
});
