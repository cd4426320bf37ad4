import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createSealer } from '#adapters/crypto/sealer.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { loadCatalogue } from '#adapters/catalogue/load-catalogue.js';
import { MemoryDataKeys, MemoryEventLog } from '#adapters/event-store/memory/memory-event-log.js';
import { createLogger } from '#adapters/observability/logger.js';
import { createMetrics } from '#adapters/observability/metrics.js';
import { createCommandApi, type CommandApiDependencies } from '#apps/command-api/src/app.js';
import {
  absentOperation,
  foldRecorded,
  handleCommand,
  streamOf,
  type KnownOperation,
  type ListPage,
  type ListQuery,
  type OperationCommand,
} from '#domain';

/** One key a tenant and role, told from each other by their names. */
export const KEYS = {
  agent: 'key-t1-agent',
  auditor: 'key-t1-auditor',
  operator: 'key-t1-operator',
  admin: 'key-t1-admin',
  /** The same caller after its credential was rotated. */
  agentRotated: 'key-t1-agent-rotated',
  otherTenant: 'key-t2-admin',
} as const;

export const catalogue = loadCatalogue(fileURLToPath(new URL('catalogue.yaml', import.meta.url)), {});

/** I1 and P1 of the public cases. */
export const I1 = { workflow_id: 'case-1842', step: 'issue_refund', object: 'order-4417', revision: 1 };
export const P1 = { order_id: '4417', amount_minor: 3800, currency: 'USD', reason: 'damaged item' };
export const SUBMISSION = { action_type: 'refund.create', identity: I1, payload: P1 };

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // The shape is what the tests look at.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any;
  readonly text: string;
}

export interface Call {
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is. */
  readonly raw?: string | Buffer;
}

/** The app on in-memory ports, and hands to move its operations on as a dispatcher would. */
export interface TestApi {
  readonly app: NestFastifyApplication;
  readonly deps: CommandApiDependencies;
  readonly log: MemoryEventLog;
  readonly dataKeys: MemoryDataKeys;
  readonly lines: string[];
  call(method: string, url: string, call?: Call): Promise<Answer>;
  submit(body?: unknown, call?: Call): Promise<Answer>;
  /** Applies commands to an operation, one append each. */
  apply(operationId: string, ...commands: OperationCommand[]): Promise<KnownOperation>;
  seal(operationId: string, result: unknown): Promise<string>;
  close(): Promise<void>;
}

export async function startApi(overrides: Partial<CommandApiDependencies> = {}): Promise<TestApi> {
  const sealer = createSealer([{ version: 'v1', key: Buffer.alloc(32, 7) }]);
  const dataKeys = new MemoryDataKeys(sealer);
  const log = new MemoryEventLog(nodeHashing, dataKeys);
  const lines: string[] = [];
  const deps: CommandApiDependencies = {
    log,
    clock: { nowMs: () => Date.now() },
    hashing: nodeHashing,
    sealer,
    dataKeys,
    catalogue,
    identitySecrets: [{ version: 'v1', secret: 'identity-secret-1' }],
    apiKeys: [
      { key: KEYS.agent, tenant: 't1', role: 'agent' },
      { key: KEYS.agentRotated, tenant: 't1', role: 'agent' },
      { key: KEYS.auditor, tenant: 't1', role: 'auditor' },
      { key: KEYS.operator, tenant: 't1', role: 'operator' },
      { key: KEYS.admin, tenant: 't1', role: 'admin' },
      { key: KEYS.otherTenant, tenant: 't2', role: 'admin' },
    ],
    apiKeyPepper: 'pepper',
    view: viewOf(log),
    parked: null,
    lane: null,
    limits: { rateLimitPerSecond: 0 },
    readiness: [],
    logger: createLogger({ process: 'test', level: 'debug', stream: { write: (line) => void lines.push(line) } }),
    metrics: createMetrics({ nodeMetrics: false }),
    newId: () => randomUUID(),
    ...overrides,
  };
  const app = await createCommandApi(deps);
  const call = (method: string, url: string, options: Call = {}) => inject(app, method, url, options);
  return {
    app,
    deps,
    log: deps.log as MemoryEventLog,
    dataKeys,
    lines,
    call,
    submit: (body: unknown = SUBMISSION, options: Call = {}) => call('POST', '/v1/operations', { body, ...options }),
    apply: (operationId, ...commands) => apply(deps, operationId, commands),
    seal: (operationId, result) => sealResult(deps, operationId, result),
    close: () => app.close(),
  };
}

async function inject(
  app: NestFastifyApplication,
  method: string,
  url: string,
  { key = KEYS.agent, headers, body, raw }: Call,
): Promise<Answer> {
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await app.inject({
    method: method as 'GET',
    url,
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  });
  const isJson = response.payload !== '' && String(response.headers['content-type'] ?? '').includes('json');
  return { status: response.statusCode, headers: response.headers, body: isJson ? response.json() : null, text: response.payload };
}

async function apply(deps: CommandApiDependencies, operationId: string, commands: readonly OperationCommand[]): Promise<KnownOperation> {
  let state: KnownOperation | null = null;
  for (const command of commands) {
    const commandId = randomUUID();
    const result = await handleCommand(deps, {
      stream: streamOf(operationId),
      commands: [command],
      commandId,
      tenant: null,
      actor: 'test',
      correlation: commandId,
      causation: null,
      traceparent: null,
    });
    if (result.refusal) throw new Error(`refused: ${result.refusal.code}`);
    state = result.operation.state;
  }
  return state!;
}

/** Seals as a dispatcher does: with the data key of the payload. */
async function sealResult({ log, dataKeys, sealer }: CommandApiDependencies, operationId: string, result: unknown): Promise<string> {
  const stream = streamOf(operationId);
  const { payload } = foldRecorded(absentOperation(stream), await log.readStream(stream));
  const keyId = sealer.keyIdOf(payload!);
  const dataKey = (await dataKeys.load([keyId])).get(keyId)!;
  return sealer.seal(dataKey, JSON.stringify(result), `${stream}/result`);
}

/** A view that never lags: folded from the whole log. Its cursor is the number of operations already shown. */
function viewOf(log: MemoryEventLog) {
  return {
    async list({ tenant, status, actionType, workflowId, cursor, limit }: ListQuery): Promise<ListPage> {
      const streams = [...new Set((await log.readAll(0n, 10_000)).map(({ stream }) => stream))].reverse();
      const states = await Promise.all(
        streams.map(async (stream) => foldRecorded(absentOperation(stream), await log.readStream(stream)).state as KnownOperation),
      );
      const matching = states.filter(
        ({ facts, status: is }) =>
          facts.tenant === tenant &&
          (status === null || is === status) &&
          (actionType === null || facts.actionType === actionType) &&
          (workflowId === null || facts.identity.workflow_id === workflowId),
      );
      const from = Number(cursor ?? 0);
      const next = from + limit;
      return { operations: matching.slice(from, next), nextCursor: next < matching.length ? String(next) : null };
    },
  };
}

/** Commands that take an operation through one attempt. */
export function startAttempt(attemptId = randomUUID()): OperationCommand {
  return { type: 'StartAttempt', attemptId, worker: 'test-worker' };
}

export function attemptSucceeded(result: string | null, providerOperationId = 'pay_1', attempt = 1): OperationCommand {
  return { type: 'RecordOutcome', attempt, jitter: 0, outcome: { kind: 'succeeded', providerOperationId, result, responseDigest: null } };
}

export function attemptUnknown(attempt = 1): OperationCommand {
  return { type: 'RecordOutcome', attempt, jitter: 0, outcome: { kind: 'unknown', code: 'timeout', status: null } };
}
