import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import type { OperationResource } from '#domain';
import { isSettled, paymentOrder, StandaloneProcess, type Answer } from '../support/standalone-process.js';

/** The and the design's promises, seen from outside: over HTTP, against the provider's own ledger. */
describe('the main job on one machine', () => {
  let dataDir: string;
  let onefold: StandaloneProcess;
  let database: EmbeddedPostgres | undefined;

  beforeAll(async () => {
    dataDir = StandaloneProcess.makeDataDir();
    onefold = await StandaloneProcess.start(dataDir);
  });
  afterAll(async () => {
    await onefold?.kill();
    await database?.stop();
    await StandaloneProcess.removeDataDir(dataDir);
  });

  const eventsOf = async (operationId: string): Promise<string[]> => {
    const { body } = await onefold.request<{ events: { type: string }[] }>('GET', `/v1/operations/${operationId}/events`);
    return body.events.map(({ type }) => type);
  };
  const effectsOf = async (reference: string) => {
    const { calls, effects } = await onefold.ledger(reference);
    return { calls, effects };
  };

  it('carries an operation out and answers its repetition with the stored result', async () => {
    const first = await onefold.plan('a', 'order-1', {}, { prefer: 'wait=10' });
    expect(first.status).toBe(200);
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(first.headers.get('location')).toBe(`/v1/operations/${first.body.operation_id}`);
    expect(first.headers.get('preference-applied')).toBe('wait=10');
    expect(first.body.status).toBe('succeeded');
    expect(first.body.provider_operation_id).toBeTruthy();

    const again = await onefold.plan('a', 'order-1');
    expect(again.status).toBe(200);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.body.operation_id).toBe(first.body.operation_id);
    expect(first.body.result).toEqual({ id: first.body.provider_operation_id });
    expect(again.body).toMatchObject({ provider_operation_id: first.body.provider_operation_id, result: first.body.result });
    expect(await effectsOf('order-1')).toEqual({ calls: 1, effects: 1 });
    expect(await eventsOf(first.body.operation_id)).toEqual(['OperationPlanned', 'AttemptStarted', 'OperationSucceeded']);
  });

  it('makes one operation, one call and one effect of 200 parallel submissions', async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, () => onefold.plan('a', 'order-200')));
    expect(new Set(answers.map(({ body }) => body.operation_id)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.get('idempotent-replayed') !== 'true')).toHaveLength(1);
    await onefold.until(answers[0]!.body.operation_id, ({ status }) => status === 'succeeded');
    expect(await effectsOf('order-200')).toEqual({ calls: 1, effects: 1 });
  });

  it('class C: an answer that was lost becomes unknown, then a look-up, then succeeded, with one call', async () => {
    await onefold.script({ reference: 'order-c' }, 'ACCEPT_HANG');
    // The source holds a character that PostgreSQL's own JSON functions can't: it must stop nothing.
    const request = { ...paymentOrder('c', 'order-c'), source: { agent: 'a\u0000b' } };
    const { body } = await onefold.request('POST', '/v1/operations', { body: request, headers: { prefer: 'wait=10' } });
    expect(body.status).toBe('unknown');
    expect(body.guidance).toMatchObject({ state: 'unconfirmed', same_identity: 'attaches', new_operation: false });
    const settled = await onefold.until(body.operation_id, isSettled);
    expect(settled).toMatchObject({ status: 'succeeded', evidence: 'lookup' });
    expect(await eventsOf(body.operation_id)).toEqual([
      'OperationPlanned',
      'AttemptStarted',
      'OutcomeUnknown',
      'OutcomeChecked',
      'OperationSucceeded',
    ]);
    expect(await effectsOf('order-c')).toEqual({ calls: 1, effects: 1 });
  });

  it.each(['c', 'd'])('class %s: an effect that lands late, after "not found", stays the only one', async (labClass) => {
    const object = `order-late-${labClass}`;
    await onefold.script({ reference: object }, 'LATE_LANDING', { delay_ms: 5_000 });
    const { body } = await onefold.plan(labClass, object);
    const settled = await onefold.until(body.operation_id, isSettled);
    expect(settled).toMatchObject({ status: 'succeeded', evidence: 'lookup', attempt_count: 1 });
    expect(await eventsOf(body.operation_id)).toContain('OutcomeChecked');
    expect(await effectsOf(object)).toEqual({ calls: 1, effects: 1 });
  });

  it('refuses the same identity with another amount, and takes a reworded presentational field for the same', async () => {
    const first = await onefold.plan('a', 'order-2', { payload: { reason: 'damaged item' } }, { prefer: 'wait=10' });
    const other = await onefold.plan('a', 'order-2', { payload: { amount_minor: 3_900 } });
    expect(other.status).toBe(422);
    expect(other.headers.get('content-type')).toContain('application/problem+json');
    expect(other.body).toMatchObject({ code: 'payload_mismatch', operation_id: first.body.operation_id });
    expect(JSON.stringify(other.body)).not.toContain('125000');
    const reworded = await onefold.plan('a', 'order-2', { payload: { reason: 'item arrived damaged' } });
    expect(reworded.status).toBe(200);
    expect(reworded.body.operation_id).toBe(first.body.operation_id);
    expect(await effectsOf('order-2')).toEqual({ calls: 1, effects: 1 });
  });

  it('class E: a rejected repetition of the business reference proves the first send', async () => {
    await onefold.script({ reference: 'order-e' }, 'ACCEPT_RESET');
    const { body } = await onefold.plan('e', 'order-e');
    const settled = await onefold.until(body.operation_id, isSettled);
    expect(settled).toMatchObject({ status: 'succeeded', evidence: 'already_done', attempt_count: 2 });
    expect((await onefold.ledger('order-e')).effects).toBe(1);
  });

  it('class A: the same key after a lost answer gives the stored result, not a second effect', async () => {
    await onefold.script({ reference: 'order-a' }, 'ACCEPT_RESET');
    const { body } = await onefold.plan('a', 'order-a');
    const settled = await onefold.until(body.operation_id, isSettled);
    expect(settled).toMatchObject({ status: 'succeeded', attempt_count: 2 });
    expect((await onefold.ledger('order-a')).effects).toBe(1);
  });

  it('retries what was provably not consumed, and believes a declared refusal', async () => {
    await onefold.script({ reference: 'order-busy' }, 'R429', { retry_after_seconds: 1 });
    await onefold.script({ reference: 'order-declined' }, 'D402');
    const busy = await onefold.plan('c', 'order-busy');
    const declined = await onefold.plan('c', 'order-declined');
    expect(await onefold.until(busy.body.operation_id, isSettled)).toMatchObject({ status: 'succeeded', attempt_count: 2 });
    expect(await onefold.until(declined.body.operation_id, isSettled)).toMatchObject({
      status: 'failed_final',
      last_error: { code: 'http_402' },
    });
    expect((await onefold.ledger('order-declined')).effects).toBe(0);
  });

  it('lists what it has, and finds it by workflow', async () => {
    const { body } = await onefold.plan('a', 'order-listed', { identity: { workflow_id: 'case-listed' } }, { prefer: 'wait=10' });
    let listed: Answer<{ operations: OperationResource[] }>;
    do {
      listed = await onefold.request('GET', '/v1/operations?workflow_id=case-listed&status=succeeded');
    } while (listed.body.operations.length === 0);
    expect(listed.body.operations.map(({ operation_id }) => operation_id)).toEqual([body.operation_id]);
  });

  describe('mail', () => {
    const mail = (object: string, subject = 'Your application') => ({
      action_type: 'email.send',
      identity: { workflow_id: 'case-1842', step: 'send_approval_notice', business_object: object, revision: 2 },
      payload: { to: ['p@example.test'], subject, text: 'It was approved.' },
    });

    it('goes out over SMTP once, under a Message-ID derived from the operation', async () => {
      const answer = await onefold.request('POST', '/v1/operations', { body: mail('application-731'), headers: { prefer: 'wait=10' } });
      expect(answer.body).toMatchObject({ status: 'succeeded' });
      const messageId = answer.body.provider_operation_id!;
      expect(messageId).toMatch(/^<?[0-9a-f-]{36}@onefold\.example>?$/);
      expect(await onefold.ledger(messageId)).toMatchObject({ calls: 1, effects: 1 });
    });

    it('is unknown after silence behind the final dot, and is not sent again', async () => {
      await onefold.script({ class: 'smtp' }, 'ACCEPT_HANG');
      const before = await onefold.ledger();
      const { body } = await onefold.request('POST', '/v1/operations', { body: mail('application-732') });
      const settled = await onefold.until(body.operation_id, isSettled);
      expect(settled).toMatchObject({ status: 'unknown', review: { open: true, reason: 'no_lookup' }, attempt_count: 1 });
      const after = await onefold.ledger();
      expect({ calls: after.calls - before.calls, effects: after.effects - before.effects }).toEqual({ calls: 1, effects: 1 });
    });
  });

  it('class F: unknown with one review, nothing sent again, also after a restart and a day; a person settles it once', async () => {
    await onefold.script({ reference: 'order-f' }, 'ACCEPT_HANG');
    const { body } = await onefold.plan('f', 'order-f');
    const unknown = await onefold.until(body.operation_id, isSettled);
    expect(unknown).toMatchObject({ status: 'unknown', review: { open: true, reason: 'no_lookup' }, guidance: { state: 'checking' } });

    expect(await onefold.stop()).toBe(0);
    database = await StandaloneProcess.startDatabaseLater(dataDir, 86_400_000);
    onefold = await StandaloneProcess.start(dataDir, { DATABASE_URL: database.url });
    // Another operation of the same class goes through, so the dispatcher has been at work since.
    const other = await onefold.plan('f', 'order-f2', {}, { prefer: 'wait=10' });
    expect(other.body.status).toBe('succeeded');
    expect(new Date(other.body.created_at).getTime() - new Date(unknown.created_at).getTime()).toBeGreaterThan(86_400_000);
    const still = await onefold.request('GET', `/v1/operations/${body.operation_id}`);
    expect(still.body).toMatchObject({ status: 'unknown', review: { open: true }, attempt_count: 1, revision: unknown.revision });
    expect(await effectsOf('order-f')).toEqual({ calls: 1, effects: 1 });

    const resolve = (decision: object, revision: number) =>
      onefold.request<OperationResource & { winner: object }>('POST', `/v1/operations/${body.operation_id}/resolve`, {
        body: { reason: 'seen in the bank statement', ...decision },
        headers: { 'if-match': `"${revision}"` },
      });
    const first = await resolve({ decision: 'happened', provider_operation_id: 'statement-17' }, still.body.revision);
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({ status: 'succeeded', provider_operation_id: 'statement-17', evidence: 'person' });
    const second = await resolve({ decision: 'did_not_happen', evidence: 'a mistake' }, still.body.revision);
    expect(second.status).toBe(409);
    expect(second.body).toMatchObject({ code: 'review_already_decided', winner: { decision: 'happened' } });
    expect(await effectsOf('order-f')).toEqual({ calls: 1, effects: 1 });
  });

  it('leaves no trace of a refused request under its identity', async () => {
    const bad = await onefold.request<{ code: string }>('POST', '/v1/operations', {
      body: paymentOrder('a', 'order-3', { payload: { amount_minor: '38' } }),
    });
    expect(bad.status).toBe(400);
    const good = await onefold.plan('a', 'order-3');
    expect(good.status).toBe(202);
    expect(good.headers.get('idempotent-replayed')).toBeNull();
  });
});
