import { describe, expect, it } from 'vitest';
import { ReadinessChecks } from '#adapters/observability/readiness.js';
import { KEYS, startApi, type TestApi } from './support/api.js';

async function withApi(overrides: Parameters<typeof startApi>[0], use: (api: TestApi) => Promise<void>): Promise<void> {
  const api = await startApi(overrides);
  try {
    await use(api);
  } finally {
    await api.close();
  }
}

describe('probes', () => {
  it('the process lives whatever it depends on', () =>
    withApi({ readiness: [{ name: 'log', check: () => Promise.reject(new Error('down')) }] }, async (api) => {
      expect(await api.call('GET', '/livez', { key: null })).toMatchObject({ status: 200, body: { status: 'live' } });
    }));

  it('it is ready when all checks pass', () =>
    withApi({ readiness: [{ name: 'log', check: async () => undefined }] }, async (api) => {
      expect(await api.call('GET', '/readyz', { key: null })).toMatchObject({ status: 200, body: { status: 'ready' } });
    }));

  it('it is not when one fails, and says which to whoever asks', () =>
    withApi(
      {
        readiness: [
          { name: 'log', check: () => Promise.reject(new Error('connect to db.internal refused')) },
          { name: 'view', check: async () => undefined },
        ],
      },
      async (api) => {
        const brief = await api.call('GET', '/readyz', { key: null });
        expect(brief.status).toBe(503);
        expect(brief.body).toEqual({ status: 'not_ready' });
        const verbose = await api.call('GET', '/readyz?verbose', { key: null });
        expect(verbose.body).toEqual({
          status: 'not_ready',
          checks: [
            { name: 'log', ok: false },
            { name: 'view', ok: true },
          ],
        });
        expect(api.lines.join('')).not.toContain('db.internal');
      },
    ));

  it('asks the parts once a second at most, and gives up on a slow one', () =>
    withApi({}, async ({ deps }) => {
      let nowMs = 0;
      let asked = 0;
      const slow = { name: 'slow', check: () => (asked++, new Promise<void>(() => undefined)) };
      const checks = new ReadinessChecks([slow], deps.logger, () => nowMs, 5);
      const outcomes = await Promise.all([checks.read(), checks.read(), checks.read()]);
      expect(outcomes.every(({ ready }) => !ready)).toBe(true);
      expect(asked).toBe(1);
      nowMs += 1_000;
      await checks.read();
      expect(asked).toBe(2);
    }));
});

describe('metrics', () => {
  it('count requests by route, method and status, and know neither tenants nor made-up paths', () =>
    withApi({}, async (api) => {
      const { body } = await api.submit();
      await api.call('GET', `/v1/operations/${body.operation_id}`);
      for (let n = 0; n < 3; n++) await api.call('GET', `/made-up-${n}`);
      const { status, text, headers } = await api.call('GET', '/metrics', { key: null });
      expect(status).toBe(200);
      expect(String(headers['content-type'])).toContain('text/plain');
      expect(text).toContain('onefold_http_requests_total{route="/v1/operations",method="POST",status="202"} 1');
      expect(text).toContain('onefold_http_requests_total{route="/v1/operations/:id",method="GET",status="200"} 1');
      expect(text).toContain('onefold_http_requests_total{route="unmatched",method="unmatched",status="404"} 3');
      expect(text).toContain('onefold_http_request_duration_seconds_count{route="/v1/operations",method="POST"} 1');
      for (const secret of [body.operation_id, KEYS.agent, 't1', 'made-up']) expect(text).not.toContain(`"${secret}`);
    }));
});

describe('capabilities', () => {
  it('tell what can be asked for and by which rules', () =>
    withApi({ limits: { rateLimitPerSecond: 50 } }, async (api) => {
      const { status, body } = await api.call('GET', '/v1/capabilities', { key: KEYS.auditor });
      expect(status).toBe(200);
      expect(body.actions.map(({ action_type }: { action_type: string }) => action_type)).toEqual(['refund.create', 'note.write']);
      expect(body.actions[0]).toMatchObject({
        provider: 'payments',
        risk: 'irreversible',
        identity: [['workflow_id', 'step', 'object', 'revision']],
        payload_schema: { type: 'object', required: ['order_id', 'amount_minor', 'currency'] },
        presentational: ['/reason'],
        attempts_max: 3,
        on_unknown: ['lookup', 'review'],
        provider_key_retention_seconds: 86_400,
      });
      expect(body.actions[1]).toMatchObject({ identity: [], payload_schema: null, provider_key_retention_seconds: null });
      expect(body.identity).toMatchObject({ fields_max: 8, retention: 'unlimited', key_version: 'v1' });
      expect(body.identity.never_part_of_it).toContain('run_id');
      expect(body.payload_hash.version).toBe('hs256-v1');
      expect(body.limits).toEqual({ body_bytes: 262_144, batch_items: 100, wait_seconds: 25, requests_per_second: 50 });
    }));
});

describe('closing', () => {
  it('answers those who wait, and then ends', async () => {
    const api = await startApi();
    const recorded = new Promise<void>((resolve) => api.log.onAppended(() => resolve()));
    const answer = api.submit(undefined, { headers: { prefer: 'wait=25' } });
    await recorded;
    await api.close();
    expect((await answer).status).toBe(202);
  });
});
