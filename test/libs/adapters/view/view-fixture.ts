import { nodeHashing } from '#adapters/crypto/hashing.js';
import { MemoryEventLog } from '#adapters/event-store/memory/memory-event-log.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { migrate } from '#adapters/postgres/migrate.js';
import { DigestBuilder } from '#adapters/view/view-digest.js';
import {
  deriveIdentity,
  evolve,
  handleCommand,
  initialState,
  type EventLog,
  type Identity,
  type OperationCommand,
  type OperationPolicy,
  type OperationState,
  type RecordedEvent,
} from '#domain';
import { createTestDatabase } from '../../../support/test-database.js';

/** Where the tests' time begins. */
export const T0 = Date.parse('2026-01-05T10:00:00.000Z');

export const POLICY: OperationPolicy = {
  max_attempts: 3,
  backoff: { initial_ms: 1_000, factor: 2, max_ms: 60_000 },
  lease_ms: 10_000,
  on_unknown: ['lookup', 'same_key_retry', 'review'],
  same_key: { by: 'key', retention_ms: 86_400_000, margin_ms: 3_600_000, repeats_stored_errors: false },
  lookup: {
    consistent: false,
    visibility_lag_ms: 3_000,
    landing_ms: 5_000,
    first_check_ms: 1_000,
    max_checks: 4,
    backoff: { initial_ms: 1_000, factor: 2, max_ms: 30_000 },
  },
};

const SECRETS = [{ version: 'v1', secret: '0'.repeat(64) }];

export interface ViewDatabase {
  readonly url: string;
  readonly pool: Pool;
  close(): Promise<void>;
}

/** A database with the schema in it, and a pool as the projection gets one. */
export async function openViewDatabase(): Promise<ViewDatabase> {
  const { url, drop } = await createTestDatabase();
  const pool = openPool({ url, durable: false });
  await migrate(pool);
  const close = async () => {
    await pool.end();
    await drop();
  };
  return { url, pool, close };
}

export interface Intent {
  readonly tenant?: string;
  readonly actionType?: string;
  readonly identity: Identity;
}

/** Causes real histories: every event comes from `decide`. Time moves only by `waitMs`. */
export class Histories {
  nowMs = T0;
  private commands = 0;

  constructor(readonly log: EventLog = new MemoryEventLog(nodeHashing)) {}

  /** The operation id of an intent; the same for the same one. */
  idOf(intent: Intent): string {
    return this.derive(intent).operationId;
  }

  /** Plans the operation, and starts its first attempt unless told not to. */
  async plan(intent: Intent, { start = true }: { start?: boolean } = {}): Promise<string> {
    const { tenant = 't1', actionType = 'refund.create', identity } = intent;
    const { operationId, idempotencyKey, providerKey } = this.derive(intent);
    const plan: OperationCommand = {
      type: 'PlanOperation',
      payloadHashes: ['h1'],
      planned: {
        operation_id: operationId,
        idempotency_key: idempotencyKey,
        action_type: actionType,
        identity,
        payload_hash: 'h1',
        payload: 'sealed-payload',
        provider: 'payments',
        provider_key: providerKey,
        policy: POLICY,
        source: { channel: 'agent' },
        client_key: null,
      },
    };
    await this.run(operationId, start ? [plan, this.startAttempt()] : [plan], tenant);
    return operationId;
  }

  startAttempt(): OperationCommand {
    return { type: 'StartAttempt', attemptId: `attempt-${this.commands}`, worker: 'w1' };
  }

  async succeed(operationId: string, providerOperationId: string | null, attempt = 1): Promise<void> {
    const outcome = { kind: 'succeeded', providerOperationId, result: 'sealed-result', responseDigest: null } as const;
    await this.run(operationId, [{ type: 'RecordOutcome', attempt, outcome, jitter: 0.5 }]);
  }

  async fail(operationId: string, attempt = 1): Promise<void> {
    const outcome = { kind: 'failed', code: 'declined', reason: 'The card was declined.' } as const;
    await this.run(operationId, [{ type: 'RecordOutcome', attempt, outcome, jitter: 0.5 }]);
  }

  async loseAnswer(operationId: string, attempt = 1): Promise<void> {
    const outcome = { kind: 'unknown', code: 'timeout', status: null } as const;
    await this.run(operationId, [{ type: 'RecordOutcome', attempt, outcome, jitter: 0.5 }]);
  }

  /** A refused command leaves no event, which is as legal an outcome as any. */
  async run(
    operationId: string,
    commands: readonly [OperationCommand, ...OperationCommand[]],
    tenant: string | null = null,
  ): Promise<void> {
    await handleCommand(
      { log: this.log, clock: { nowMs: () => this.nowMs }, hashing: nodeHashing },
      {
        stream: `operation-${operationId}`,
        commands,
        commandId: `command-${this.commands++}`,
        tenant,
        actor: 'test',
        correlation: 'c1',
        causation: null,
        traceparent: null,
      },
    );
  }

  /** The whole log, in order. */
  async events(): Promise<RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for (;;) {
      const some = await this.log.readAll(events.at(-1)?.position ?? 0n, 1_000);
      events.push(...some);
      if (some.length < 1_000) return events;
    }
  }

  private derive({ tenant = 't1', actionType = 'refund.create', identity }: Intent) {
    return deriveIdentity(nodeHashing, SECRETS, { tenant, actionType, identity });
  }
}

export interface FoldedOperation {
  readonly revision: number;
  readonly position: bigint;
  readonly state: Exclude<OperationState, { status: 'absent' }>;
}

/** What the view has to say, by operation id: each stream folded from its first event, one event at a time. */
export function foldLog(events: readonly RecordedEvent[]): Map<string, FoldedOperation> {
  const folded = new Map<string, FoldedOperation>();
  for (const { event, metadata, stream, revision, position } of events) {
    const operationId = stream.slice('operation-'.length);
    const before = folded.get(operationId);
    const state = evolve(before?.state ?? initialState, event, { tenant: metadata.tenant, atMs: Date.parse(metadata.at), revision });
    if (state.status !== 'absent') folded.set(operationId, { revision, position: before?.position ?? position, state });
  }
  return folded;
}

export function digestOfFold(folded: ReadonlyMap<string, FoldedOperation>) {
  const digest = new DigestBuilder();
  for (const operationId of [...folded.keys()].sort()) {
    const { revision, state } = folded.get(operationId)!;
    digest.add(operationId, revision, state);
  }
  return digest.finish();
}
