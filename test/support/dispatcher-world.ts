import { randomUUID } from 'node:crypto';
import { DueWorkProjection } from '#adapters/due-work/due-work-projection.js';
import { PostgresDueWork } from '#adapters/due-work/postgres-due-work.js';
import { createSealer } from '#adapters/crypto/sealer.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { PostgresDataKeys } from '#adapters/event-store/postgres/postgres-data-keys.js';
import { PostgresEventLog } from '#adapters/event-store/postgres/postgres-event-log.js';
import { DirectFeed } from '#adapters/feed/direct-feed.js';
import { Checkpoints } from '#adapters/postgres/checkpoints.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { migrate } from '#adapters/postgres/migrate.js';
import { PostgresClock } from '#adapters/postgres/postgres-clock.js';
import { Dispatcher } from '#apps/dispatcher/src/dispatcher.js';
import {
  absentOperation,
  deriveIdentity,
  foldRecorded,
  handleCommand,
  streamOf,
  type Catalogue,
  type DueWork,
  type KnownOperation,
  type OperationCommand,
  type OperationEvent,
  type OperationPolicy,
  type ProviderAdapter,
  type ProviderDefinition,
  type RecordedEvent,
} from '#domain';
import { DispatcherNode, type Fault, type NodeOptions } from './dispatcher-node.js';
import { POLICIES } from './dispatcher-policies.js';
import { Pause, ScriptedProvider, type ProviderClass } from './dispatcher-provider.js';
import { createTestDatabase, type TestDatabase } from './test-database.js';

const SECOND = 1_000;
/** Far more than any of these tests needs; only a lost signal waits so long, and the message then says for what. */
const SIGNAL_TIMEOUT_MS = 15 * SECOND;
/** Small: many worlds share one server. */
const POOL_SIZE = 3;

export class DispatcherWorld {
  readonly providers = new Map<string, ScriptedProvider>();
  private readonly policies = new Map<string, OperationPolicy>();
  private readonly nodes = new Set<DispatcherNode>();
  /** Added to every process's monotonic counter. */
  private waitedMs = 0;
  private readonly waiting = new Set<() => void>();
  private readonly pauses: Pause[] = [];
  private planned = 0;
  private readonly sealer = createSealer([{ version: 'm1', key: new Uint8Array(32).fill(7) }]);

  constructor(
    private readonly database: TestDatabase,
    readonly pool: Pool,
    private readonly reader: PostgresEventLog,
  ) {}

  /** A provider of this class, called `name`, and the policy of its actions. */
  provider(name: string, providerClass: ProviderClass, policy: Partial<OperationPolicy> = {}): ScriptedProvider {
    const provider = new ScriptedProvider(providerClass, () => this.signal());
    this.providers.set(name, provider);
    this.policies.set(name, { ...POLICIES[providerClass], ...policy });
    return provider;
  }

  /** A place for a call to wait at; the end of the test releases it. */
  pause(): Pause {
    const pause = new Pause();
    this.pauses.push(pause);
    return pause;
  }

  async node(options: NodeOptions = {}): Promise<DispatcherNode> {
    const { worker = `w${this.nodes.size}`, without = [], wrapLog = (log) => log, wrapDueWork = (dueWork) => dueWork } = options;
    const pool = openPool({ url: this.database.url, poolSize: POOL_SIZE });
    const log = new PostgresEventLog(pool, { url: this.database.url, hashing: nodeHashing });
    const clock = await PostgresClock.start(pool, () => undefined);
    const dataKeys = new PostgresDataKeys(pool, this.sealer);
    const dueWork = wrapDueWork(this.signalling(new PostgresDueWork(pool)));
    const names = [...this.providers.keys()].filter((name) => !without.includes(name));
    const catalogue: Catalogue = {
      actions: new Map(),
      providers: new Map(names.map((name) => [name, definition(name, options.definitions?.[name])])),
    };
    const providers = new Map<string, ProviderAdapter>(names.map((name) => [name, this.providers.get(name)!]));
    const faults: Fault[] = [];
    const dispatcher = new Dispatcher({
      log: wrapLog(log),
      clock,
      hashing: nodeHashing,
      sealer: this.sealer,
      dataKeys,
      dueWork,
      catalogue,
      providers,
      worker,
      newId: randomUUID,
      monotonicMs: () => performance.now() + this.waitedMs,
      random: options.random ?? (() => 0),
      report: {
        attempt: () => this.signal(),
        lookUp: () => this.signal(),
        fault: (what, operationId, error) => {
          faults.push({ what, operationId, error });
          this.signal();
        },
      },
    });
    const feed = new DirectFeed({
      log,
      checkpoints: new Checkpoints(pool),
      consumer: new DueWorkProjection(
        dueWork,
        log,
        () => clock.nowMs(),
        () => dispatcher.wake(),
      ),
      gatherMs: 1,
      onError: (error) => faults.push({ what: 'the feed', operationId: null, error }),
    });
    const node = new DispatcherNode((closed) => this.nodes.delete(closed), pool, log, clock, dataKeys, dueWork, feed, dispatcher, faults);
    log.onAppended(() => this.signal());
    this.nodes.add(node);
    return node;
  }

  /** Plans one operation at the provider. @returns its id */
  async plan(node: DispatcherNode, provider: string, policy: Partial<OperationPolicy> = {}): Promise<string> {
    const { command, dataKey, operationId } = this.planning(provider, policy);
    await handleCommand(
      { log: node.log, clock: node.clock, hashing: nodeHashing },
      { ...this.request(operationId), commands: [command], newDataKey: dataKey },
    );
    return operationId;
  }

  /** Plan and claim in one append, as a command API with a lane of its own does. */
  async planAndClaim(node: DispatcherNode, provider: string, worker: string) {
    const { command, dataKey, key, payload, operationId } = this.planning(provider, {});
    const result = await handleCommand(
      { log: node.log, clock: node.clock, hashing: nodeHashing },
      {
        ...this.request(operationId),
        commands: [command, { type: 'StartAttempt', attemptId: randomUUID(), worker }],
        newDataKey: dataKey,
      },
    );
    if (result.refusal) throw new Error('The test planned an operation twice.');
    return { operationId, claimed: { operation: result.operation, payload, dataKey: key } };
  }

  async planMany(node: DispatcherNode, provider: string, count: number): Promise<string[]> {
    return Promise.all(Array.from({ length: count }, () => this.plan(node, provider)));
  }

  async events(operationId: string): Promise<readonly RecordedEvent[]> {
    return this.reader.readStream(streamOf(operationId));
  }

  async types(operationId: string): Promise<OperationEvent['type'][]> {
    return (await this.events(operationId)).map(({ event }) => event.type);
  }

  async state(operationId: string): Promise<KnownOperation> {
    const stream = streamOf(operationId);
    return foldRecorded(absentOperation(stream), await this.reader.readStream(stream)).state as KnownOperation;
  }

  async dueRows(): Promise<{ operation_id: string; provider: string; due_at_ms: string; revision: number }[]> {
    const { rows } = await this.pool.query('select * from onefold.due_work order by operation_id');
    return rows as never;
  }

  /** Waits for signals until the condition holds. */
  async until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    const late = performance.now() + SIGNAL_TIMEOUT_MS;
    for (;;) {
      const changed = new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => resolve(false), late - performance.now());
        this.waiting.add(() => (clearTimeout(timer), resolve(true)));
      });
      if (await condition()) return;
      if (!(await changed)) throw new Error(`Waited in vain: ${what}.`);
    }
  }

  async untilStatus(operationIds: string | readonly string[], status: KnownOperation['status']): Promise<void> {
    const ids = typeof operationIds === 'string' ? [operationIds] : operationIds;
    await this.until(`${ids.length} operations ${status}`, async () => {
      const streams = await this.reader.readStreams(ids.map(streamOf));
      return [...streams].every(([stream, events]) => foldRecorded(absentOperation(stream), events).state.status === status);
    });
  }

  async untilEvent(operationId: string, type: OperationEvent['type'], times = 1): Promise<void> {
    await this.until(`${type} ${times}x`, async () => (await this.types(operationId)).filter((each) => each === type).length >= times);
  }

  /**
   * Steps the database's clock, and no counter of a process, to `offsetMs` after the real time, for every session. The function is replaced, since a setting of the
   * database takes a role with more rights than the tests' one.
   */
  async stepClock(offsetMs: number): Promise<void> {
    await moveDatabaseClock(this.pool, offsetMs);
    await Promise.all([...this.nodes].map(({ clock }) => clock.calibrate()));
  }

  /** As if so much time had passed: the database's clock and the processes' own counters alike. */
  async moveClock(offsetMs: number): Promise<void> {
    this.waitedMs = offsetMs;
    await this.stepClock(offsetMs);
  }

  /** Closes every process; the database, the providers and their ledgers stay. */
  async closeNodes(): Promise<void> {
    await Promise.all([...this.nodes].map((node) => node.close()));
  }

  signal(): void {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const tell of waiting) tell();
  }

  /** Ends what is under way and forgets everything, for the next test. */
  async reset(): Promise<void> {
    for (const pause of this.pauses.splice(0)) pause.release();
    await this.closeNodes();
    for (const table of ['events', 'data_keys', 'due_work', 'checkpoints']) await this.pool.query(`delete from onefold.${table}`);
    this.waitedMs = 0;
    await moveDatabaseClock(this.pool, 0);
    this.providers.clear();
    this.policies.clear();
  }

  async close(): Promise<void> {
    await this.reset();
    await this.reader.close();
    await this.pool.end();
    await this.database.drop();
  }

  private planning(provider: string, policy: Partial<OperationPolicy>) {
    const identity = { workflow_id: 'case-1842', step: 'issue_refund', business_object: `order-${++this.planned}`, revision: 1 };
    const secrets = [{ version: 'v1', secret: 'identity-secret' }];
    const { idempotencyKey, operationId, stream, providerKey } = deriveIdentity(nodeHashing, secrets, {
      tenant: 't1',
      actionType: 'refund.create',
      identity,
    });
    const { dataKey: key, record: dataKey } = this.sealer.newDataKey(operationId);
    const payload = { order_id: '4417', amount_minor: 3800, currency: 'USD' };
    const hash = `hs256-v1:${'a'.repeat(64)}`;
    const command: OperationCommand = {
      type: 'PlanOperation',
      payloadHashes: [hash],
      planned: {
        operation_id: operationId,
        idempotency_key: idempotencyKey,
        action_type: 'refund.create',
        identity,
        payload_hash: hash,
        payload: this.sealer.seal(key, JSON.stringify(payload), `${stream}/payload`),
        provider,
        provider_key: providerKey,
        policy: { ...this.policies.get(provider)!, ...policy },
        // A character that PostgreSQL's own JSON functions can't hold: nothing may depend on them.
        source: { agent: 'a\u0000b' },
        client_key: null,
      },
    };
    return { operationId, command, dataKey, key, payload };
  }

  private request(operationId: string) {
    const stream = streamOf(operationId);
    return {
      stream,
      loaded: absentOperation(stream),
      commandId: randomUUID(),
      tenant: 't1',
      actor: 'test',
      correlation: 'test',
      causation: null,
      traceparent: null,
    };
  }

  private signalling(dueWork: DueWork): DueWork {
    return {
      take: (room, hideMs) => dueWork.take(room, hideMs),
      takeOthers: (providers, rows, hideMs) => dueWork.takeOthers(providers, rows, hideMs),
      countDue: () => dueWork.countDue(),
      set: async (changes) => {
        await dueWork.set(changes);
        this.signal();
      },
    };
  }
}

export async function moveDatabaseClock(pool: Pool, offsetMs: number): Promise<void> {
  await pool.query(`create or replace function onefold.now_ms() returns bigint language sql volatile
    as $$ select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + (${offsetMs}) $$`);
}

export async function createDispatcherWorld(): Promise<DispatcherWorld> {
  const database = await createTestDatabase();
  const pool = openPool({ url: database.url, poolSize: 2 });
  await migrate(pool);
  return new DispatcherWorld(database, pool, new PostgresEventLog(pool, { url: database.url, hashing: nodeHashing }));
}

function definition(name: string, over: Partial<ProviderDefinition> = {}): ProviderDefinition {
  return { name, kind: 'http', timeoutMs: 2 * SECOND, limits: { concurrency: 50, perSecond: null }, breaker: null, ...over };
}
