import { describe, expect, it } from 'vitest';
import { MemoryEventLog } from '#adapters/event-store/memory/memory-event-log.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import {
  absentOperation,
  chainHash,
  CHAIN_START,
  ContentionExceeded,
  handleCommand,
  loadOperation,
  LogUnavailable,
  type AppendRequest,
  type AppendResult,
  type CommandRequest,
  type OperationCommand,
  type OperationEvent,
} from '#domain';
import { T0 } from '../../../support/decider-specification.js';
import { cancel, plan, record, startAttempt, told } from '../support/commands.js';
import { LEASE_MS } from '../support/policies.js';

const stream = `operation-op_${'1'.repeat(32)}`;

/** The log, with a hand on what becomes of the next appends. */
class Log extends MemoryEventLog {
  appends = 0;
  beforeAppend: (() => Promise<unknown>) | null = null;
  loseAnswer = false;

  override async append(request: AppendRequest): Promise<AppendResult> {
    this.appends++;
    const before = this.beforeAppend;
    this.beforeAppend = null;
    await before?.();
    const result = await super.append(request);
    if (!this.loseAnswer) return result;
    this.loseAnswer = false;
    throw new LogUnavailable('The answer was lost.');
  }
}

function world() {
  const log = new Log(nodeHashing);
  let nowMs = T0;
  const ports = { log, hashing: nodeHashing, clock: { nowMs: () => nowMs } };
  let commands = 0;
  const send = (command: OperationCommand | [OperationCommand, ...OperationCommand[]], over: Partial<CommandRequest> = {}) =>
    handleCommand(ports, {
      stream,
      commands: Array.isArray(command) ? command : [command],
      commandId: `command-${commands++}`,
      tenant: 't1',
      actor: 'agent-1',
      correlation: 'c-1',
      causation: null,
      traceparent: null,
      ...over,
    });
  return {
    log,
    send,
    types: async () => (await log.readStream(stream)).map(({ event }) => event.type),
    later: (ms: number) => (nowMs += ms),
  };
}

describe('handleCommand', () => {
  it('loads, folds, decides and appends, with who, when and why', async () => {
    const { send, log } = world();
    const planned = await send(plan());
    expect(planned).toMatchObject({ operation: { state: { status: 'planned', facts: { tenant: 't1' } }, payload: 'sealed-payload' } });
    const started = await send(startAttempt);
    expect(started).toMatchObject({ operation: { state: { status: 'executing', revision: 1 } }, appended: [{ revision: 1 }] });
    const [first, second] = await log.readStream(stream);
    expect(first!.metadata).toEqual({
      tenant: 't1',
      at: new Date(T0).toISOString(),
      actor: 'agent-1',
      correlation: 'c-1',
      causation: null,
      traceparent: null,
    });
    const text = JSON.stringify;
    const stored = { id: first!.id, type: 'OperationPlanned', data: text(first!.event.data), metadata: text(first!.metadata) };
    expect(first!.chain).toBe(chainHash(nodeHashing, CHAIN_START, stored));
    expect(second!.chain).not.toBe(first!.chain);
  });

  it('appends nothing for a command that has nothing to do, and says how things stand', async () => {
    const { send, log } = world();
    await send(plan());
    const again = await send(plan());
    expect(again).toMatchObject({ operation: { state: { status: 'planned' } }, appended: [] });
    expect(log.appends).toBe(1);
  });

  it('appends several commands as one', async () => {
    const { send, log, types } = world();
    await send([plan(), startAttempt]);
    expect(await types()).toEqual(['OperationPlanned', 'AttemptStarted']);
    expect(log.appends).toBe(1);
  });

  it('skips the later commands when the first has nothing to do: a repetition claims no attempt', async () => {
    const { send, types } = world();
    await send(plan());
    await send([plan(), startAttempt]);
    expect(await types()).toEqual(['OperationPlanned']);
  });

  it('hands a refusal on and appends nothing', async () => {
    const { send, types } = world();
    await send(plan());
    await send(startAttempt);
    expect(await send(cancel)).toMatchObject({ refusal: { code: 'not_cancellable' } });
    expect(await types()).toHaveLength(2);
  });

  it('knows nothing of another tenant’s operation', async () => {
    const { send } = world();
    await send(plan());
    expect(await send(cancel, { tenant: 't2' })).toMatchObject({ refusal: { code: 'operation_not_found' } });
    expect(await send(plan(), { tenant: 't2' })).toMatchObject({ refusal: { code: 'operation_not_found' } });
    expect(await send(cancel, { stream: 'operation-op_none', tenant: 't2' })).toMatchObject({ refusal: { code: 'operation_not_found' } });
  });

  it('works on the operation’s own behalf, under its tenant', async () => {
    const { send, log } = world();
    await send(plan());
    await send(startAttempt, { tenant: null });
    expect((await log.readStream(stream)).map(({ metadata }) => metadata.tenant)).toEqual(['t1', 't1']);
  });

  it('decides anew when somebody got in between: one claim wins, the other has nothing to do', async () => {
    const { send, log, types } = world();
    await send(plan());
    log.beforeAppend = () => send(startAttempt);
    expect(await send(startAttempt)).toMatchObject({ operation: { state: { status: 'executing' } }, appended: [] });
    expect(await types()).toEqual(['OperationPlanned', 'AttemptStarted']);
  });

  it('F18: of ten plans at once one is stored, and each is told the operation', async () => {
    const { send, types } = world();
    const results = await Promise.all(Array.from({ length: 10 }, () => send(plan(), { loaded: absentOperation(stream) })));
    expect(results.filter((result) => !result.refusal && result.appended.length > 0)).toHaveLength(1);
    expect(results.every((result) => result.operation.state.status === 'planned')).toBe(true);
    expect(await types()).toEqual(['OperationPlanned']);
  });

  it('F12: repeated after a lost answer, stores the event once', async () => {
    const { send, log, types } = world();
    log.loseAnswer = true;
    const once = { commandId: 'same', loaded: absentOperation(stream) };
    await expect(send(plan(), once)).rejects.toThrow(LogUnavailable);
    expect(await send(plan(), once)).toMatchObject({ operation: { state: { status: 'planned' } }, appended: [{ revision: 0 }] });
    expect(await types()).toEqual(['OperationPlanned']);
  });

  it('draws the conclusions with the command, in the same append', async () => {
    const { send, types, later } = world();
    await send([plan(), startAttempt]);
    later(LEASE_MS);
    await send({ type: 'Conclude' });
    await send(record(1, told.success()));
    expect(await types()).toEqual(['OperationPlanned', 'AttemptStarted', 'OutcomeUnknown', 'OperationSucceeded']);
  });

  it('gives up when writers keep getting in between, and says so', async () => {
    const { send, log } = world();
    await send([plan(), startAttempt]);
    const evidenceFrom = (n: number) => record(1, { kind: 'unknown', code: `late-${n}`, status: null });
    let others = 0;
    const interfere = async () => {
      await appendForeign(log, { type: 'CheckRequested', data: { reason: `${others++}` } });
      log.beforeAppend = interfere;
    };
    log.beforeAppend = interfere;
    await expect(send(evidenceFrom(1))).rejects.toThrow(ContentionExceeded);
    // Tried once, and again after each of ten conflicts.
    expect(others).toBe(11);
  });

  it('can go on behind an event of a newer version', async () => {
    const { send, log } = world();
    await send(plan());
    await appendForeign(log, { type: 'SomethingNewer', data: {} } as never);
    expect(await send(startAttempt)).toMatchObject({ operation: { state: { status: 'executing', revision: 2 } } });
    expect((await loadOperation(log, stream)).state).toMatchObject({ status: 'executing', revision: 2 });
  });
});

/** Somebody else appends to the stream, past `handleCommand`. */
async function appendForeign(log: Log, event: OperationEvent): Promise<void> {
  const last = (await log.readStream(stream)).at(-1)!;
  const result = await MemoryEventLog.prototype.append.call(log, {
    stream,
    expectedRevision: last.revision,
    previousChain: last.chain,
    events: [{ id: nodeHashing.uuid5(`other-${last.revision}`), event, metadata: last.metadata }],
  });
  expect(result.outcome).toBe('written');
}
