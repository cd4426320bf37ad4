import { Inject } from '@nestjs/common';
import { Query, QueryHandler, type IQueryHandler } from '@nestjs/cqrs';
import { absentOperation, foldRecorded, isOperationId, streamOf, type EventLog, type OperationResource, type RecordedEvent } from '#domain';
import { chainIsIntact } from '#adapters/event-store/encoding.js';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import type { Caller } from '../http/access.js';
import { Problem } from '../problems/problem.js';
import { OperationPresenter } from './operation-presenter.js';
import type { FoundOperation } from './plan-operation.js';

/** An operation folded from its stream: what was just written is what is read. */
export class ReadOperationQuery extends Query<FoundOperation> {
  constructor(
    readonly operationId: string,
    readonly caller: Caller,
  ) {
    super();
  }
}

@QueryHandler(ReadOperationQuery)
export class ReadOperationHandler implements IQueryHandler<ReadOperationQuery> {
  constructor(@Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies) {}

  /** @throws Problem operation_not_found; LogUnavailable */
  async execute({ operationId, caller }: ReadOperationQuery): Promise<FoundOperation> {
    return (await readOwn(this.deps.log, operationId, caller)).operation;
  }
}

export interface OperationHistory {
  readonly operation_id: string;
  /** Whether the stored events still give the hashes that were stored with them. */
  readonly chain_valid: boolean;
  readonly events: readonly EventResource[];
  /** Only with `at`: that moment, and the operation as of then; null before its first event. */
  readonly at?: string;
  readonly as_of?: OperationResource | null;
}

export interface EventResource {
  readonly id: string;
  readonly type: string;
  readonly revision: number;
  /** Decimal digits: it may exceed what a JSON number can hold. */
  readonly position: string;
  /** As stored: sealed parts stay sealed. */
  readonly data: object;
  readonly metadata: object;
  readonly chain: string;
}

/** The events of an operation, for audit. */
export class ReadHistoryQuery extends Query<OperationHistory> {
  constructor(
    readonly operationId: string,
    readonly caller: Caller,
    readonly atMs: number | null,
  ) {
    super();
  }
}

@QueryHandler(ReadHistoryQuery)
export class ReadHistoryHandler implements IQueryHandler<ReadHistoryQuery> {
  constructor(
    @Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies,
    @Inject(OperationPresenter) private readonly presenter: OperationPresenter,
  ) {}

  /** @throws Problem operation_not_found; LogUnavailable */
  async execute({ operationId, caller, atMs }: ReadHistoryQuery): Promise<OperationHistory> {
    const { events } = await readOwn(this.deps.log, operationId, caller);
    return {
      operation_id: operationId,
      chain_valid: chainIsIntact(this.deps.hashing, events),
      events: events.map(describeEvent),
      ...(atMs !== null && { at: new Date(atMs).toISOString(), as_of: await this.asOf(operationId, events, atMs) }),
    };
  }

  private async asOf(operationId: string, events: readonly RecordedEvent[], atMs: number): Promise<OperationResource | null> {
    const until = events.filter(({ metadata }) => Date.parse(metadata.at) <= atMs);
    const { state } = foldRecorded(absentOperation(streamOf(operationId)), until);
    return state.status === 'absent' ? null : this.presenter.present(state, atMs);
  }
}

function describeEvent({ id, event, revision, position, metadata, chain }: RecordedEvent): EventResource {
  return { id, type: event.type, revision, position: String(position), data: event.data, metadata, chain };
}

/** Another tenant's operation is as good as none, down to the answer. */
async function readOwn(
  log: EventLog,
  operationId: string,
  caller: Caller,
): Promise<{ events: readonly RecordedEvent[]; operation: FoundOperation }> {
  if (!isOperationId(operationId)) throw new Problem('operation_not_found');
  const stream = streamOf(operationId);
  const events = await log.readStream(stream);
  const loaded = foldRecorded(absentOperation(stream), events);
  const { state } = loaded;
  if (state.status === 'absent' || state.facts.tenant !== caller.tenant) throw new Problem('operation_not_found');
  return { events, operation: { ...loaded, state } };
}
