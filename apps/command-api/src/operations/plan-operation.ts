import { Inject } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import {
  absentOperation,
  deriveIdentity,
  foldRecorded,
  handleCommand,
  olderIdentities,
  payloadHashes,
  type AttemptSlot,
  type CommandRequest,
  type DataKey,
  type DerivedIdentity,
  type Intent,
  type KnownOperation,
  type LoadedOperation,
  type PlanOperation,
} from '#domain';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import type { Caller } from '../http/access.js';
import { IdentityUnavailable } from '../problems/problem-of.js';
import { problemFromRefusal } from '../problems/from-refusal.js';
import { OperationWatches } from './operation-watches.js';
import type { PlanIntent } from './plan-intent.js';

export type FoundOperation = LoadedOperation & { readonly state: KnownOperation };

export interface PlanResult {
  readonly operation: FoundOperation;
  /** Whether an earlier submission had planned it. */
  readonly replayed: boolean;
  /** Whether the wait that was asked for was granted. */
  readonly waited: boolean;
  /** The key made for a new operation; null for one planned earlier, whose key is read. */
  readonly dataKey: DataKey | null;
}

export interface Wait {
  readonly timeoutMs: number;
  /** Aborted when the client goes away: it ends the wait, never the recording. */
  readonly gone: AbortSignal;
}

export class PlanOperationCommand extends Command<PlanResult> {
  constructor(
    readonly intent: PlanIntent,
    readonly caller: Caller,
    readonly traceparent: string | null,
    readonly wait: Wait | null,
  ) {
    super();
  }
}

/** Records an intent under its identity, once; with a free lane beside it also claims the first attempt, in the same append. */
@CommandHandler(PlanOperationCommand)
export class PlanOperationHandler implements ICommandHandler<PlanOperationCommand> {
  constructor(
    @Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies,
    @Inject(OperationWatches) private readonly watches: OperationWatches,
  ) {}

  /** @throws Problem payload_mismatch, action_mismatch; IdentityUnavailable, LogUnavailable, LogOverloaded, ContentionExceeded */
  async execute(command: PlanOperationCommand): Promise<PlanResult> {
    const intent = { tenant: command.caller.tenant, actionType: command.intent.action.actionType, identity: command.intent.identity };
    const { names, older } = this.identitiesOf(intent);
    const earlier = await this.firstPlanned(older);
    const watch = command.wait ? this.watches.begin(earlier?.stream ?? names.stream) : null;
    try {
      const planned = await this.plan(command, names, earlier);
      if (!watch) return { ...planned, waited: false };
      const { timeoutMs, gone } = command.wait!;
      return { ...planned, operation: await watch.settled(planned.operation, timeoutMs, gone), waited: true };
    } finally {
      watch?.end();
    }
  }

  private identitiesOf(intent: Intent): { readonly names: DerivedIdentity; readonly older: readonly DerivedIdentity[] } {
    const { hashing, identitySecrets } = this.deps;
    try {
      return { names: deriveIdentity(hashing, identitySecrets, intent), older: olderIdentities(hashing, identitySecrets, intent) };
    } catch (cause) {
      throw new IdentityUnavailable('The identity could not be derived.', { cause });
    }
  }

  /** Under an older secret. */
  private async firstPlanned(older: readonly DerivedIdentity[]): Promise<LoadedOperation | null> {
    if (older.length === 0) return null;
    const streams = await this.deps.log.readStreams(older.map(({ stream }) => stream));
    for (const [stream, events] of streams) {
      if (events.length > 0) return foldRecorded(absentOperation(stream), events);
    }
    return null;
  }

  private async plan(
    command: PlanOperationCommand,
    names: DerivedIdentity,
    earlier: LoadedOperation | null,
  ): Promise<Omit<PlanResult, 'waited'>> {
    const { sealer, lane, newId } = this.deps;
    const { intent } = command;
    const { dataKey, record } = sealer.newDataKey(names.operationId);
    const plan = this.planCommand(intent, names, dataKey);
    const attemptId = newId();
    const slot = earlier ? null : (lane?.reserve(intent.action.provider) ?? null);
    const claim = slot && ({ type: 'StartAttempt', attemptId, worker: slot.worker } as const);
    const request: Omit<CommandRequest, 'commands'> = {
      ...this.provenance(command),
      stream: earlier?.stream ?? names.stream,
      loaded: earlier ?? absentOperation(names.stream),
      newDataKey: record,
    };
    const result = await this.runOrRelease(slot, attemptId, { payload: intent.payload, dataKey }, () =>
      handleCommand(this.deps, { ...request, commands: claim ? [plan, claim] : [plan] }),
    );
    if (result.refusal) throw problemFromRefusal(result.refusal, result.operation, this.deps.clock.nowMs());
    const replayed = result.appended.length === 0;
    return { operation: result.operation, replayed, dataKey: replayed ? null : dataKey };
  }

  private provenance({ caller, traceparent }: PlanOperationCommand) {
    const commandId = this.deps.newId();
    return { commandId, tenant: caller.tenant, actor: caller.actor, correlation: commandId, causation: null, traceparent };
  }

  private planCommand(
    { action, identity, payload, source, clientKey }: PlanIntent,
    names: DerivedIdentity,
    dataKey: DataKey,
  ): PlanOperation {
    const { hashing, identitySecrets, sealer } = this.deps;
    const hashes = payloadHashes(hashing, identitySecrets, payload, action.presentational);
    return {
      type: 'PlanOperation',
      payloadHashes: hashes,
      planned: {
        operation_id: names.operationId,
        idempotency_key: names.idempotencyKey,
        action_type: action.actionType,
        identity,
        payload_hash: hashes[0],
        payload: sealer.seal(dataKey, JSON.stringify(payload), `${names.stream}/payload`),
        provider: action.provider,
        provider_key: names.providerKey,
        policy: action.policy,
        source,
        client_key: clientKey,
      },
    };
  }

  /** The slot is run when the log holds our claim, and given back in every other case, an exception included: exactly one of both. */
  private async runOrRelease(
    slot: AttemptSlot | null,
    attemptId: string,
    call: { readonly payload: unknown; readonly dataKey: DataKey },
    append: () => ReturnType<typeof handleCommand>,
  ): ReturnType<typeof handleCommand> {
    let claimed = false;
    try {
      const result = await append();
      if (slot && !result.refusal && result.operation.state.status === 'executing' && result.operation.state.attemptId === attemptId) {
        claimed = true;
        slot.run({ operation: result.operation, ...call });
      }
      return result;
    } finally {
      if (!claimed) slot?.release();
    }
  }
}
