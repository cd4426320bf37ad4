import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab, type Lab } from '#apps/provider-lab/src/lab.js';
import { I1, P1 } from '../apps/command-api/support/api.js';
import { LabClient } from '../apps/provider-lab/lab-client.js';
import { StandaloneProcess } from '../support/standalone-process.js';
import { publicCase } from './registry.js';

/** `refund.create` at a provider with and one without a look-up, with the case's lease of 5 s. */
const CATALOGUE = `providers:
  asked:
    kind: http
    base_url: \${LAB_URL}/c
    timeout: 4s
    lease: 5s
    headers: { idempotency-key: '{provider_key}' }
    lookup: { request: { path: '/v1/refunds?reference={provider_key}' }, consistent: true, first_check: 100ms, present: /items, id: /id }
  mute:
    kind: http
    base_url: \${LAB_URL}/f
    timeout: 4s
    lease: 5s
    headers: { idempotency-key: '{provider_key}' }
actions:
  refund.create: { provider: asked, request: { path: /v1/refunds }, result: { provider_operation_id: id } }
  mute.refund.create: { provider: mute, request: { path: /v1/refunds }, result: { provider_operation_id: id } }
`;

let dataDir: string;
let catalogueDir: string;
let lab: Lab;
let onefold: StandaloneProcess | undefined;
beforeAll(async () => {
  dataDir = StandaloneProcess.makeDataDir();
  catalogueDir = mkdtempSync(join(tmpdir(), 'onefold-case-17-'));
  writeFileSync(join(catalogueDir, 'onefold.yaml'), CATALOGUE);
  lab = await startLab({ port: 0, smtpPort: null, ledgerFile: null });
});
afterAll(async () => {
  await onefold?.kill();
  await lab.close();
  await StandaloneProcess.removeDataDir(dataDir);
  rmSync(catalogueDir, { recursive: true, force: true });
});

const start = () => StandaloneProcess.start(dataDir, { LAB_URL: lab.url, ONEFOLD_CATALOGUE: join(catalogueDir, 'onefold.yaml') });

describe(publicCase('17'), () => {
  it(
    'the process is killed 1 s after it sent: the next one looks up and finds it, or asks a person; two calls in all',
    { timeout: 240_000 },
    async () => {
      const client = new LabClient(lab.url);
      await client.script({ match: {}, mode: 'ACCEPT_HANG', times: 0 });
      onefold = await start();
      const ids: string[] = [];
      for (const action_type of ['refund.create', 'mute.refund.create']) {
        const { status, body } = await onefold.request('POST', '/v1/operations', { body: { action_type, identity: I1, payload: P1 } });
        expect(status).toBe(202);
        ids.push(body.operation_id);
      }
      await expect.poll(async () => (await client.ledger()).effects, { timeout: 20_000 }).toBe(2);
      await delay(1_000);
      await onefold.kill();

      onefold = await start();
      const found = await onefold.until(ids[0]!, ({ status }) => status === 'succeeded' || status === 'failed_final');
      expect(found).toMatchObject({ status: 'succeeded', evidence: 'lookup', attempt_count: 1 });
      const asked = await onefold.until(ids[1]!, ({ review }) => review?.open === true);
      expect(asked).toMatchObject({ status: 'unknown', review: { reason: 'no_lookup' }, attempt_count: 1 });
      expect(await client.ledger()).toMatchObject({ calls: 2, effects: 2, max_effects_per_reference: 1 });
      expect(onefold.output.join('')).not.toMatch(/damaged item/);
      expect(await onefold.stop()).toBe(0);
    },
  );
});
