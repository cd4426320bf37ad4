import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streamOf } from '#domain';
import { attemptSucceeded, attemptUnknown, KEYS, startApi, startAttempt, type TestApi } from './support/api.js';

let api: TestApi;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

/** An action with a look-up, and one whose doubts go to a person at once. */
const withLookup = async () => (await api.submit()).body.operation_id as string;
const withoutLookup = async (n = 1) =>
  (await api.submit({ action_type: 'note.write', identity: { workflow_id: `w-${n}` }, payload: {} })).body.operation_id as string;

const act = (id: string, verb: string, body?: unknown, headers: Record<string, string> = {}, key: string = KEYS.operator) =>
  api.call('POST', `/v1/operations/${id}/${verb}`, { body, headers, key });

describe('cancelling', () => {
  it('ends a planned operation, once', async () => {
    const id = await withLookup();
    const first = await act(id, 'cancel', { reason: 'ordered twice' }, {}, KEYS.agent);
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({
      status: 'failed_final',
      last_error: { code: 'cancelled', reason: 'ordered twice' },
      evidence: 'person',
    });
    expect(first.headers.etag).toBe('"1"');
    const again = await act(id, 'cancel');
    expect(again.status).toBe(200);
    expect(await api.log.head()).toBe(2n);
  });

  it('is too late once anything was tried', async () => {
    const id = await withLookup();
    await api.apply(id, startAttempt());
    const answer = await act(id, 'cancel');
    expect(answer.status).toBe(409);
    expect(answer.body).toMatchObject({
      code: 'not_cancellable',
      operation_id: id,
      operation_status: 'executing',
      guidance: { state: 'in_progress' },
    });
  });

  it.each([{ reason: '' }, { reason: '  ' }, { reason: 7 }, { reason: 'x'.repeat(1001) }, { why: 'x' }])(
    'refuses the body %j',
    async (body) => {
      const id = await withLookup();
      const answer = await act(id, 'cancel', body);
      expect(answer.status).toBe(400);
      expect(answer.body.code).toBe('request_invalid');
      expect(await api.log.head()).toBe(1n);
    },
  );
});

describe('reconciling', () => {
  it('asks for a look-up now', async () => {
    const id = await withLookup();
    await api.apply(id, startAttempt(), attemptUnknown());
    const first = await act(id, 'reconcile', { reason: 'customer asks' });
    expect(first.status).toBe(202);
    expect(first.body.status).toBe('unknown');
    const events = await api.log.readStream(streamOf(id));
    expect(events.at(-1)!.event).toEqual({ type: 'CheckRequested', data: { reason: 'customer asks' } });
    expect((await act(id, 'reconcile')).status).toBe(202);
    expect(await api.log.readStream(streamOf(id))).toHaveLength(events.length);
  });

  it('is for unknown outcomes, of providers that can be asked', async () => {
    const id = await withLookup();
    expect((await act(id, 'reconcile')).body).toMatchObject({ status: 409, code: 'not_unknown', operation_id: id });
    const blind = await withoutLookup();
    await api.apply(blind, startAttempt(), attemptUnknown());
    expect((await act(blind, 'reconcile')).body).toMatchObject({ status: 409, code: 'no_lookup' });
  });
});

describe('resolving a review', () => {
  /** An operation whose one attempt is in doubt, with an open review, and its ETag. */
  async function inReview(n = 1): Promise<{ id: string; etag: string }> {
    const id = await withoutLookup(n);
    await api.apply(id, startAttempt(), attemptUnknown());
    const { headers, body } = await api.call('GET', `/v1/operations/${id}`);
    expect(body).toMatchObject({ status: 'unknown', review: { open: true, reason: 'no_lookup' } });
    return { id, etag: String(headers.etag) };
  }

  const happened = { decision: 'happened', reason: 'seen in the provider console', provider_operation_id: 'pay_9' };
  const gaveUp = { decision: 'give_up', reason: 'nobody can tell' };

  it('decides on the revision that was looked at', async () => {
    const { id, etag } = await inReview();
    const answer = await act(id, 'resolve', happened, { 'if-match': etag, 'idempotency-key': '"d-1"' });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      status: 'succeeded',
      provider_operation_id: 'pay_9',
      evidence: 'person',
      review: { open: false, decision: 'happened', reason: 'seen in the provider console' },
    });
    const decided = (await api.log.readStream(streamOf(id))).find(({ event }) => event.type === 'ReviewDecided')!;
    expect(decided.event.data).toMatchObject({ decision: 'happened', decision_id: 'd-1', based_on_revision: Number(etag.slice(1, -1)) });
    expect(decided.metadata.actor).toMatch(/^operator:/);
  });

  it('has one winner among ten at once; the others are told who (40f)', async () => {
    const { id, etag } = await inReview();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        act(id, 'resolve', n % 2 === 0 ? happened : gaveUp, { 'if-match': etag, 'idempotency-key': `decision-${n}` }),
      ),
    );
    const winners = answers.filter(({ status }) => status === 200);
    const others = answers.filter(({ status }) => status === 409);
    expect(winners).toHaveLength(1);
    expect(others).toHaveLength(9);
    const winner = { decision: winners[0]!.body.review.decision, decision_id: expect.stringMatching(/^decision-\d$/) };
    for (const { body } of others) expect(body).toMatchObject({ code: 'review_already_decided', operation_id: id, winner });
    const decisions = (await api.log.readStream(streamOf(id))).filter(({ event }) => event.type === 'ReviewDecided');
    expect(decisions).toHaveLength(1);
  });

  it('answers a repeated decision as the first time', async () => {
    const { id, etag } = await inReview();
    const headers = { 'if-match': etag, 'idempotency-key': 'd-1' };
    const first = await act(id, 'resolve', happened, headers);
    const again = await act(id, 'resolve', happened, headers);
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
  });

  it('names the winner also to a caller who looked at an older revision', async () => {
    const { id, etag } = await inReview();
    await act(id, 'resolve', happened, { 'if-match': etag });
    const late = await act(id, 'resolve', gaveUp, { 'if-match': '"0"' });
    expect(late.status).toBe(409);
    expect(late.body).toMatchObject({ code: 'review_already_decided', winner: { decision: 'happened', decision_id: null } });
  });

  it('needs If-Match', async () => {
    const { id } = await inReview();
    const answer = await act(id, 'resolve', happened);
    expect(answer.status).toBe(428);
    expect(answer.body.code).toBe('if_match_required');
  });

  it.each([['"0"'], ['W/"3"'], ['"abc"'], ['"02"'], ['"99999999999999999999"']])('is refused for the stale %s', async (tag) => {
    const { id, etag } = await inReview();
    const answer = await act(id, 'resolve', happened, { 'if-match': tag });
    expect(answer.status).toBe(412);
    expect(answer.body).toMatchObject({ code: 'revision_mismatch', revision: Number(etag.slice(1, -1)) });
    expect(answer.headers.etag).toBe(etag);
  });

  it.each([['*'], ['3'], ['"1", "3"'], ['']])('takes exactly one ETag, not %j', async (tag) => {
    const { id } = await inReview();
    const answer = await act(id, 'resolve', happened, { 'if-match': tag });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([{ header: 'If-Match', code: 'if_match_invalid' }]);
  });

  it.each([
    [{ ...happened, reason: undefined }, '/reason', 'member_missing'],
    [{ ...happened, reason: '   ' }, '/reason', 'member_invalid'],
    [{ ...happened, reason: 'x'.repeat(1001) }, '/reason', 'member_invalid'],
    [{ ...happened, decision: 'maybe' }, '/decision', 'member_invalid'],
    [{ ...happened, provider_operation_id: 7 }, '/provider_operation_id', 'member_invalid'],
    [{ ...happened, approve: true }, '/approve', 'member_unknown'],
  ])('refuses the body %j', async (body, pointer, code) => {
    const { id, etag } = await inReview();
    const answer = await act(id, 'resolve', body, { 'if-match': etag });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([{ pointer, code }]);
  });

  it('says why a decision is not allowed', async () => {
    const { id, etag } = await inReview();
    const answer = await act(id, 'resolve', { decision: 'retry_once', reason: 'try again' }, { 'if-match': etag });
    expect(answer.status).toBe(409);
    expect(answer.body.code).toBe('decision_not_allowed');
    expect(answer.body.detail).toContain('second effect');
  });

  it('has nothing to decide where no review was ever open', async () => {
    const id = await withLookup();
    await api.apply(id, startAttempt(), attemptSucceeded(null));
    const answer = await act(id, 'resolve', gaveUp, { 'if-match': '"2"' });
    expect(answer.body).toMatchObject({ status: 409, code: 'no_open_review' });
  });
});
