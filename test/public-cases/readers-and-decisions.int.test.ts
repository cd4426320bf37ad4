import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { KEYS, P1, SUBMISSION } from '../apps/command-api/support/api.js';
import { behave } from '../support/dispatcher-provider.js';
import { publicCase } from './registry.js';
import { CaseWorld } from './support/case-world.js';

let world: CaseWorld;
beforeAll(async () => {
  world = await CaseWorld.open();
});
afterEach(() => world.reset());
afterAll(() => world.close());

describe(publicCase('40f'), () => {
  it('ten decisions on one review at once: one is recorded, nine are told the winner; the same one again is answered as before', async () => {
    const { dispatchers } = world;
    const provider = world.provider('f');
    provider.next(behave.acceptHang);
    const node = (await dispatchers.node()).start();
    const api = await world.api(node, 'f');
    const id: string = (await api.submit()).body.operation_id;
    await dispatchers.untilEvent(id, 'ReviewRequested');
    const { headers } = await api.call('GET', `/v1/operations/${id}`, { key: KEYS.operator });
    const decide = (n: number) =>
      api.call('POST', `/v1/operations/${id}/resolve`, {
        key: KEYS.operator,
        headers: { 'if-match': String(headers['etag']), 'idempotency-key': `decision-${n}` },
        body:
          n % 2 === 0 ? { decision: 'happened', reason: 'seen', provider_operation_id: 're_1' } : { decision: 'give_up', reason: 'lost' },
      });
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => decide(n)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(9).fill(409)]);
    const won = answers.findIndex(({ status }) => status === 200);
    const winner = { decision: won % 2 === 0 ? 'happened' : 'give_up' };
    for (const { status, body } of answers) if (status === 409) expect(body).toMatchObject({ code: 'review_already_decided', winner });
    expect((await dispatchers.types(id)).filter((type) => type === 'ReviewDecided')).toHaveLength(1);
    const again = await decide(won);
    expect(again.status).toBe(200);
    expect(again.body.status).toBe(answers[won]!.body.status);
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});

describe(publicCase('40i'), () => {
  it('with no projector at all, what was answered with 202 is read at once, at its newest revision', async () => {
    const { dispatchers } = world;
    world.provider('c');
    const node = await dispatchers.node();
    const api = await world.api(node, 'c');
    const planned = await api.submit();
    expect(planned.status).toBe(202);
    const read = () => api.call('GET', String(planned.headers['location']), { key: KEYS.auditor });
    expect(await read()).toMatchObject({ status: 200, body: { status: 'planned', revision: 0 }, headers: { etag: '"0"' } });
    await node.work();
    await dispatchers.untilStatus(planned.body.operation_id, 'succeeded');
    expect(await read()).toMatchObject({ status: 200, body: { status: 'succeeded', revision: 2 } });
    const { rows } = await dispatchers.pool.query('select 1 from onefold.operation_view');
    expect(rows).toEqual([]);
  });
});

describe(publicCase('40k'), () => {
  it('without its key an operation keeps its state, its chain and its fingerprint, and nobody reads its body', async () => {
    const { dispatchers } = world;
    const provider = world.provider('c');
    const node = (await dispatchers.node()).start();
    const api = await world.api(node, 'c');
    const source = { channel: 'agent', run_id: 'r-77' };
    const { body } = await api.submit({ ...SUBMISSION, source });
    const id: string = body.operation_id;
    await dispatchers.untilStatus(id, 'succeeded');
    const read = async () => (await api.call('GET', `/v1/operations/${id}`, { key: KEYS.auditor })).body;
    const before = await read();
    const stored = await dispatchers.events(id);
    expect(before.result).not.toBeNull();

    expect(await node.dataKeys.destroy(id)).toBe(1);
    const { result, ...rest } = before;
    expect(await read()).toMatchObject({ ...rest, result: null, result_erased: true });
    expect(result).toEqual({ ok: true });
    const audit = await api.call('GET', `/v1/operations/${id}/events`, { key: KEYS.auditor });
    expect(audit.body).toMatchObject({ chain_valid: true });
    expect(audit.body.events).toHaveLength(3);
    expect(audit.text).not.toMatch(/damaged|3800/);
    expect(await dispatchers.events(id)).toEqual(stored);
    expect((await api.submit()).headers['idempotent-replayed']).toBe('true');
    expect((await api.submit({ ...SUBMISSION, payload: { ...P1, amount_minor: 3900 } })).status).toBe(422);
    expect(provider.ledger(id)).toMatchObject({ calls: 1, effects: 1 });
  });
});
