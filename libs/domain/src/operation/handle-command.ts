import type { DatabaseClock } from '../ports/clock.js';
import type { AppendRequest, DataKeyRecord, EventLog, NewEvent, RecordedEvent } from '../ports/event-log.js';
import type { Hashing } from '../ports/hashing.js';
import type { OperationCommand, Refusal } from './commands.js';
import { decide, foldDecided } from './decide.js';
import type { OperationEvent, Sealed } from './events.js';
import { timestamp } from './next-step.js';
import { evolve, initialState, type KnownOperation, type OperationState } from './state.js';

/** One stream, read and folded. */
export interface LoadedOperation {
  readonly stream: string;
  readonly state: OperationState;
  /** Chain hash of the last event; null for an absent stream. */
  readonly chain: string | null;
  /** The sealed payload of the first event; null for an absent stream. */
  readonly payload: Sealed | null;
}

export interface CommandPorts {
  readonly log: EventLog;
  readonly clock: DatabaseClock;
  readonly hashing: Hashing;
}

export interface CommandRequest {
  readonly stream: string;
  /** Decided one after another and appended as one; later ones are skipped when the first has nothing to do. */
  readonly commands: readonly [OperationCommand, ...OperationCommand[]];
  /** Unique to this command; its events' ids derive from it. */
  readonly commandId: string;
  /** Whose operation it must be; null for work on the operation's own behalf. Another tenant's is as good as none. */
  readonly tenant: string | null;
  readonly actor: string;
  readonly correlation: string;
  readonly causation: string | null;
  readonly traceparent: string | null;
  /** Where the caller already has the stream, or knows that it should not exist yet: saves the first read. */
  readonly loaded?: LoadedOperation;
  readonly newDataKey?: DataKeyRecord;
}

export type CommandResult =
  | {
      readonly operation: LoadedOperation & { readonly state: KnownOperation };
      readonly appended: readonly RecordedEvent[];
      readonly refusal?: undefined;
    }
  | { readonly refusal: Refusal; readonly operation: LoadedOperation };

/**
 * More conflicts in a row than commands race for one operation: an attempt, a look-up, a webhook, a person and a retry of each.
 * Beyond it something is wrong, and the caller is told so.
 */
const CONFLICTS_MAX = 10;

export class ContentionExceeded extends Error {
  override readonly name = 'ContentionExceeded';
}

/** Load, fold, decide, append. @throws LogUnavailable, LogOverloaded, ContentionExceeded */
export async function handleCommand(ports: CommandPorts, request: CommandRequest): Promise<CommandResult> {
  let loaded = request.loaded ?? (await loadOperation(ports.log, request.stream));
  for (let conflicts = 0; conflicts <= CONFLICTS_MAX; conflicts++) {
    const nowMs = ports.clock.nowMs();
    const decided = decideInTurn(loaded, request, nowMs);
    if ('refusal' in decided) return { refusal: decided.refusal, operation: loaded };
    if (decided.events.length === 0) return { operation: known(loaded), appended: [] };
    const append = appendRequest(ports, request, loaded, decided.events, nowMs);
    const result = await ports.log.append(append);
    if (result.outcome === 'written') return { operation: known(foldRecorded(loaded, result.events)), appended: result.events };
    const stored = await ports.log.readStream(request.stream);
    loaded = foldRecorded(absentOperation(request.stream), stored);
    if (result.outcome === 'duplicate') {
      // An earlier try of this very append was stored after all; others may have appended behind it since.
      const ours = storedAs(stored, append.events);
      if (ours) return { operation: known(loaded), appended: ours };
      // Only the ids are the same: what is stored says something else, and the command is decided anew on it (public case 39).
    }
  }
  throw new ContentionExceeded(`More than ${CONFLICTS_MAX} writers got in between on ${request.stream}.`);
}

/** The stored events with these ids; null where one of them is missing or holds other data. */
function storedAs(stored: readonly RecordedEvent[], events: readonly NewEvent[]): readonly RecordedEvent[] | null {
  const asked = new Map(events.map(({ id, event }) => [id, JSON.stringify([event.type, event.data])]));
  const ours = stored.filter(({ id }) => asked.has(id));
  const same = ours.length === events.length && ours.every(({ id, event }) => asked.get(id) === JSON.stringify([event.type, event.data]));
  return same ? ours : null;
}

function decideInTurn(
  loaded: LoadedOperation,
  request: CommandRequest,
  nowMs: number,
): { events: OperationEvent[] } | { refusal: Refusal } {
  const { state } = loaded;
  const foreign = state.status !== 'absent' && request.tenant !== null && state.facts.tenant !== request.tenant;
  if (foreign) return { refusal: { code: 'operation_not_found' } };
  const events: OperationEvent[] = [];
  let current: OperationState = state;
  for (const command of request.commands) {
    if (events.length > 0) current = foldDecided(state, events, nowMs, request.tenant ?? '');
    const decision = decide(current, command, nowMs);
    if (decision.refusal) return { refusal: decision.refusal };
    if (decision.events.length === 0) break;
    events.push(...decision.events);
  }
  return { events };
}

function appendRequest(
  { hashing }: CommandPorts,
  request: CommandRequest,
  loaded: LoadedOperation,
  events: readonly OperationEvent[],
  nowMs: number,
): AppendRequest {
  const { state } = loaded;
  const lastRevision = state.status === 'absent' ? -1 : state.revision;
  const metadata = {
    tenant: state.status === 'absent' ? (request.tenant ?? '') : state.facts.tenant,
    at: timestamp(nowMs),
    actor: request.actor,
    correlation: request.correlation,
    causation: request.causation,
    traceparent: request.traceparent,
  };
  return {
    stream: request.stream,
    expectedRevision: state.status === 'absent' ? 'no_stream' : state.revision,
    previousChain: loaded.chain,
    // The revision is part of the id's name: the same command decided anew on another state makes other events.
    events: events.map((event, index): NewEvent => ({
      id: hashing.uuid5(`${request.commandId}:${lastRevision + 1 + index}`),
      event,
      metadata,
    })),
    ...(request.newDataKey && { newDataKey: request.newDataKey }),
  };
}

export async function loadOperation(log: EventLog, stream: string): Promise<LoadedOperation> {
  return foldRecorded(absentOperation(stream), await log.readStream(stream));
}

export function absentOperation(stream: string): LoadedOperation {
  return { stream, state: initialState, chain: null, payload: null };
}

/** Folds stored events on top of what was loaded before. */
export function foldRecorded(loaded: LoadedOperation, events: readonly RecordedEvent[]): LoadedOperation {
  if (events.length === 0) return loaded;
  let { state, payload } = loaded;
  for (const { event, metadata, revision } of events) {
    if (event.type === 'OperationPlanned') payload = event.data.payload;
    state = evolve(state, event, { tenant: metadata.tenant, atMs: Date.parse(metadata.at), revision });
  }
  return { stream: loaded.stream, state, payload, chain: events.at(-1)!.chain };
}

function known(loaded: LoadedOperation): LoadedOperation & { readonly state: KnownOperation } {
  const { state } = loaded;
  if (state.status === 'absent') throw new Error(`Stream ${loaded.stream} does not begin with OperationPlanned.`);
  return { ...loaded, state };
}
