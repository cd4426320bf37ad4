import { randomUUID } from 'node:crypto';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { createSealer } from '#adapters/crypto/sealer.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import { openPool } from '#adapters/postgres/database.js';
import { startEmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import { migrate } from '#adapters/postgres/migrate.js';
import { loadSecrets } from '#adapters/runtime/secrets.js';
import { absentOperation, deriveIdentity, handleCommand, payloadHash, type OperationPolicy } from '#domain';

/** As many appends as the log gathers into one statement, twice, so that the next batch is ready when one is done. */
const AT_ONCE = 256;

const POLICY: OperationPolicy = {
  max_attempts: 6,
  backoff: { initial_ms: 500, factor: 2, max_ms: 5_000 },
  lease_ms: 10_000,
  on_unknown: ['same_key_retry', 'lookup', 'review'],
  same_key: { by: 'key', retention_ms: 86_400_000, margin_ms: 300_000, repeats_stored_errors: true },
  lookup: null,
};

/** Stores `n` finished operations as the service itself would have: three events and a data key each. Progress on standard error. */
export async function storeOperations(folder: string, n: number): Promise<void> {
  const postgres = await startEmbeddedPostgres({ dataDir: folder });
  const pool = openPool({ url: postgres.url });
  await migrate(pool);
  const log = new PostgresEventLog(pool, { url: postgres.url, hashing: nodeHashing });
  const secrets = loadSecrets(folder, { identitySecrets: null, masterKeys: null });
  const sealer = createSealer(secrets.masterKeys);
  const ports = { log, hashing: nodeHashing, clock: { nowMs: () => Date.now() } };
  const payload = { account_id: 'acc-1', amount_minor: 125_000, currency: 'RUB', business_reference: 'stored', note: 'b'.repeat(300) };
  let next = 0;
  const worker = async () => {
    while (next < n) {
      const index = next++;
      if (index % 50_000 === 0) console.error(`bench: ${index} of ${n} operations stored`);
      const identity = { workflow_id: `stored-${index}`, step: 'pay', business_object: `order-${index}`, revision: 1 };
      const intent = { tenant: 'bench', actionType: 'lab_a.payment_order.create', identity };
      const { idempotencyKey, operationId, stream, providerKey } = deriveIdentity(nodeHashing, secrets.identitySecrets, intent);
      const { dataKey, record } = sealer.newDataKey(operationId);
      const hash = payloadHash(nodeHashing, secrets.identitySecrets[0]!, payload, ['/reason']);
      const planned = {
        operation_id: operationId,
        idempotency_key: idempotencyKey,
        action_type: intent.actionType,
        identity,
        payload_hash: hash,
        payload: sealer.seal(dataKey, JSON.stringify(payload), `${stream}/payload`),
        provider: 'lab_a',
        provider_key: providerKey,
        policy: POLICY,
        source: { channel: 'agent', agent: 'bench' },
        client_key: null,
      };
      const result = sealer.seal(dataKey, JSON.stringify({ id: `po_${index}` }), `${stream}/result`);
      await handleCommand(ports, {
        stream,
        commands: [
          { type: 'PlanOperation', planned, payloadHashes: [hash] },
          { type: 'StartAttempt', attemptId: randomUUID(), worker: 'bench' },
          {
            type: 'RecordOutcome',
            attempt: 1,
            outcome: { kind: 'succeeded', providerOperationId: `po_${index}`, result, responseDigest: null },
            jitter: 0,
          },
        ],
        commandId: randomUUID(),
        tenant: 'bench',
        actor: 'bench',
        correlation: operationId,
        causation: null,
        traceparent: null,
        loaded: absentOperation(stream),
        newDataKey: record,
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await log.close();
  await pool.end();
  await postgres.stop();
}
