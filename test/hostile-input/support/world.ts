import { randomBytes, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { AddressInfo } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Agent } from 'undici';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import { DueWorkProjection } from '#adapters/due-work/due-work-projection.js';
import { directFeeds } from '#adapters/feed/direct-feed.js';
import type { Feed } from '#adapters/feed/feed.js';
import { createLogger } from '#adapters/observability/logger.js';
import { createMetrics } from '#adapters/observability/metrics.js';
import { openEngine, type Engine } from '#adapters/runtime/open-engine.js';
import { OperationProjection } from '#adapters/view/operation-projection.js';
import { PostgresOperationView } from '#adapters/view/postgres-operation-view.js';
import { createCommandApi } from '#apps/command-api/src/app.js';
import { absentOperation, foldRecorded, handleCommand, LogUnavailable, streamOf, type EventLog, type OperationCommand } from '#domain';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.js';
import { Description, type SeenAnswer } from './description.js';

export const ROLES = ['agent', 'auditor', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];
export type Tenant = 'tenant-a' | 'tenant-b';
export const TENANTS: readonly Tenant[] = ['tenant-a', 'tenant-b'];

/** What must not come out anywhere once it has come in. */
export const CANARY_ADDRESS = 'canary-7f3@person.example';
const CANARY_RESULT = 'result-canary-51d';

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Operations of one tenant, one in each situation. */
export interface Seeded {
  readonly ids: readonly string[];
  /** Texts that only this tenant may ever read. */
  readonly marks: readonly string[];
}

/** The real app over a real database, two tenants with operations, and everything that the process says. */
export class HostileWorld {
  readonly lines: string[] = [];
  readonly seeded = new Map<Tenant, Seeded>();
  /** While true, the log can neither be read nor written. */
  away = false;
  description!: Description;
  port = 0;
  private readonly keys = new Map<string, string>();
  private readonly secrets = {
    master: randomBytes(32),
    identity: randomBytes(32).toString('hex'),
    pepper: randomBytes(16).toString('hex'),
  };
  private readonly agent = new Agent({ connections: 4, pipelining: 1 });
  private readonly feeds: Feed[] = [];

  private constructor(
    private readonly database: TestDatabase,
    private engine: Engine,
    private app: NestFastifyApplication,
  ) {}

  static async start(): Promise<HostileWorld> {
    const world = new HostileWorld(await createTestDatabase(), undefined as never, undefined as never);
    for (const tenant of TENANTS)
      for (const role of ROLES) world.keys.set(`${tenant} ${role}`, `key-canary-${randomBytes(12).toString('hex')}`);
    await world.openEngine();
    await world.openApp();
    const document = await world.send({ method: 'GET', url: '/openapi.json', headers: {} });
    world.description = new Description(JSON.parse(document.text));
    for (const tenant of TENANTS) await world.seed(tenant);
    return world;
  }

  get server(): NestFastifyApplication {
    return this.app;
  }

  key(tenant: Tenant, role: Role): string {
    return this.keys.get(`${tenant} ${role}`)!;
  }

  authorization(tenant: Tenant, role: Role): Record<string, string> {
    return { authorization: `Bearer ${this.key(tenant, role)}` };
  }

  async send({ method, url, headers, body }: HttpRequest): Promise<SeenAnswer> {
    const origin = `http://127.0.0.1:${this.port}`;
    // By path and not by URL, which would be put in order first.
    const answer = await this.agent.request({ origin, path: url, method: method as 'GET', headers, body: body ?? null });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  }

  head(): Promise<bigint> {
    return this.engine.log.head();
  }

  /** Every row of every table, as text. */
  async storedText(): Promise<string> {
    const tables = await this.engine.pool.query<{ name: string }>("select tablename as name from pg_tables where schemaname = 'onefold'");
    const texts = [];
    for (const { name } of tables.rows) {
      const { rows } = await this.engine.pool.query<{ row: string }>(`select t::text as row from onefold.${name} t`);
      texts.push(...rows.map(({ row }) => row));
    }
    return texts.join('\n');
  }

  /** How many events speak of a name. */
  async eventsOf(name: string): Promise<number> {
    const text = 'select count(*)::integer as count from onefold.events where position(cast($1 as text) in data) > 0';
    return (await this.engine.pool.query<{ count: number }>(text, [name])).rows[0]!.count;
  }

  /** Resolves when the view and the due work have everything. */
  async settled(): Promise<void> {
    for (const feed of this.feeds) while ((await feed.lag()) !== 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  async metrics(): Promise<string> {
    return (await this.send({ method: 'GET', url: '/metrics', headers: {} })).text;
  }

  /** API keys, the master key and the secrets, in the spellings that a careless line would have. */
  secretSpellings(): string[] {
    const { master, identity, pepper } = this.secrets;
    return [...this.keys.values(), master.toString('hex'), master.toString('base64'), master.toString('base64url'), identity, pepper];
  }

  async close(): Promise<void> {
    await this.agent.close();
    await this.app.close();
    await Promise.all(this.feeds.map((feed) => feed.stop()));
    await this.engine.close();
    await this.database.drop();
  }

  private logger() {
    return createLogger({ process: 'test', level: 'trace', stream: { write: (line) => void this.lines.push(line) } });
  }

  private async openEngine(): Promise<void> {
    const { master, identity } = this.secrets;
    this.engine = await openEngine({
      databaseUrl: this.database.url,
      applicationName: 'hostile-input',
      eventStore: 'postgres',
      eventStoreUrl: null,
      feed: 'direct',
      allowWeakDurability: false,
      masterKeys: [{ version: 'v1', key: master }],
      identitySecrets: [{ version: 'v1', secret: identity }],
      logger: this.logger(),
    });
    const { log, derivedPool, checkpoints, dueWork, clock } = this.engine;
    const openFeed = directFeeds({ log, checkpoints });
    const nowMs = () => clock.nowMs();
    for (const consumer of [new OperationProjection(derivedPool, log), new DueWorkProjection(dueWork, log, nowMs, () => undefined)]) {
      const onError = (err: Error) => this.logger().error({ err }, 'the feed stumbled');
      const feed = openFeed({ consumer, gatherMs: 5, onError, onProgress: () => undefined, onParked: async () => undefined });
      feed.start();
      this.feeds.push(feed);
    }
  }

  private async openApp(): Promise<void> {
    const { engine, secrets } = this;
    this.app = await createCommandApi({
      ...engine,
      log: this.switchable(engine.log),
      catalogue: loadCatalogue(fileURLToPath(new URL('catalogue.yaml', import.meta.url)), {}),
      identitySecrets: [{ version: 'v1', secret: secrets.identity }],
      apiKeys: TENANTS.flatMap((tenant) => ROLES.map((role) => ({ key: this.key(tenant, role), tenant, role }))),
      apiKeyPepper: secrets.pepper,
      view: new PostgresOperationView(engine.pool),
      parked: null,
      lane: null,
      limits: { rateLimitPerSecond: 0 },
      readiness: [{ name: 'event_log', check: () => engine.check() }],
      logger: this.logger(),
      metrics: createMetrics(),
      newId: () => randomUUID(),
    });
    await this.app.listen(0, '127.0.0.1');
    this.port = (this.app.getHttpServer().address() as AddressInfo).port;
  }

  private switchable(log: EventLog): EventLog {
    const guarded =
      <Arguments extends unknown[], Result>(call: (...given: Arguments) => Promise<Result>) =>
      (...given: Arguments): Promise<Result> =>
        this.away ? Promise.reject(new LogUnavailable('The log did not answer.', { cause: new Error(CANARY_ADDRESS) })) : call(...given);
    return {
      append: guarded((appended) => log.append(appended)),
      readStream: guarded((stream) => log.readStream(stream)),
      readStreams: guarded((streams) => log.readStreams(streams)),
      readAll: guarded((after, limit) => log.readAll(after, limit)),
      head: guarded(() => log.head()),
      onAppended: (listener) => log.onAppended(listener),
    };
  }

  private async seed(tenant: Tenant): Promise<void> {
    const mark = `mark-${tenant}-${randomBytes(6).toString('hex')}`;
    const ids: string[] = [];
    const plan = async (actionType: 'refund.create' | 'note.write', ...commands: OperationCommand[]) => {
      const identity = { workflow_id: mark, step: `s-${ids.length}`, object: mark, revision: 1 };
      const payload = { order_id: '1', amount_minor: 5, currency: 'EUR', memo: CANARY_ADDRESS };
      const body = JSON.stringify({ action_type: actionType, identity, payload, source: { channel: mark } });
      const headers = { ...this.authorization(tenant, 'agent'), 'content-type': 'application/json' };
      const { status, text } = await this.send({ method: 'POST', url: '/v1/operations', headers, body });
      if (status !== 202) throw new Error(`seeding was refused: ${text}`);
      const { operation_id: id } = JSON.parse(text) as { operation_id: string };
      ids.push(id);
      for (const command of commands) await this.apply(id, command);
      return id;
    };
    const start = (): OperationCommand => ({ type: 'StartAttempt', attemptId: randomUUID(), worker: 'test' });
    const outcome = (result: Extract<OperationCommand, { type: 'RecordOutcome' }>['outcome']): OperationCommand => ({
      type: 'RecordOutcome',
      attempt: 1,
      jitter: 0,
      outcome: result,
    });
    await plan('refund.create');
    await plan('note.write');
    await plan('refund.create', start());
    await plan('refund.create', start(), outcome({ kind: 'unknown', code: 'timeout', status: 504 }));
    await plan('note.write', start(), outcome({ kind: 'unknown', code: 'timeout', status: null }));
    await plan('refund.create', start(), outcome({ kind: 'failed', code: 'declined', reason: 'declined' }));
    await plan('refund.create', start(), outcome({ kind: 'not_sent', code: 'refused', reached: false, retryAfterMs: null }));
    const done = await plan('refund.create', start());
    const result = await this.seal(done, { id: 'pay_1', note: `${CANARY_RESULT}-${mark}` });
    await this.apply(done, outcome({ kind: 'succeeded', providerOperationId: `pay-${mark}`, result, responseDigest: null }));
    this.seeded.set(tenant, { ids, marks: [mark, tenant, ...ids] });
    await this.settled();
  }

  private async apply(operationId: string, command: OperationCommand): Promise<void> {
    const commandId = randomUUID();
    const about = { tenant: null, actor: 'test', correlation: commandId, causation: null, traceparent: null };
    const result = await handleCommand(this.engine, { stream: streamOf(operationId), commands: [command], commandId, ...about });
    if (result.refusal) throw new Error(`seeding was refused: ${result.refusal.code}`);
  }

  private async seal(operationId: string, result: unknown): Promise<string> {
    const { log, dataKeys, sealer } = this.engine;
    const stream = streamOf(operationId);
    const { payload } = foldRecorded(absentOperation(stream), await log.readStream(stream));
    const keyId = sealer.keyIdOf(payload!);
    return sealer.seal((await dataKeys.load([keyId])).get(keyId)!, JSON.stringify(result), `${stream}/result`);
  }
}
