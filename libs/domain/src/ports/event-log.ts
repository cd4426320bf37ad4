import type { OperationEvent } from '../operation/events.js';

/** An event about to be appended. The id is made once per command and reused by each retry of it. */
export interface NewEvent {
  readonly id: string;
  readonly event: OperationEvent;
  readonly metadata: EventMetadata;
}

/** Who, when and why; stored beside the data. `at` is the database's time, RFC 3339 UTC. */
export interface EventMetadata {
  readonly tenant: string;
  readonly at: string;
  readonly actor: string;
  /** The command that led here, across all its events. */
  readonly correlation: string;
  /** The event or command that directly caused this one. */
  readonly causation: string | null;
  readonly traceparent: string | null;
}

/** A stored event. `position` counts over the whole log from 1 without holes, `revision` inside its stream from 0. */
export interface RecordedEvent extends NewEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint;
  /** Hex SHA-256 over the previous event's chain hash and this event's stored bytes; see `chain.ts`. */
  readonly chain: string;
}

export type ExpectedRevision = 'no_stream' | number;

export interface AppendRequest {
  readonly stream: string;
  readonly expectedRevision: ExpectedRevision;
  /** Chain hash of the event at `expectedRevision`; null with `no_stream`. */
  readonly previousChain: string | null;
  /** 1-16 events, stored together or not at all. */
  readonly events: readonly NewEvent[];
  /** A new data key that the events' sealed parts need: durable no later than they are, kept only if they are written. */
  readonly newDataKey?: DataKeyRecord;
}

export interface DataKeyRecord {
  readonly keyId: string;
  readonly operationId: string;
  /** The data key, encrypted by a master key. */
  readonly wrapped: string;
}

export type AppendResult =
  | { readonly outcome: 'written'; readonly events: readonly RecordedEvent[] }
  /** These very events (by id) were stored by an earlier try of the same request. */
  | { readonly outcome: 'duplicate'; readonly revision: number }
  | { readonly outcome: 'conflict'; readonly actualRevision: ExpectedRevision };

/** Append-only streams with optimistic concurrency, and the log of all of them in commit order. */
export interface EventLog {
  /**
   * Appends at an exact revision. Many appends are gathered into one write, each with its own result.
   * @throws LogUnavailable when it is not certain what was stored
   */
  append(request: AppendRequest): Promise<AppendResult>;
  /** The whole stream in order, empty when there is none. @throws LogUnavailable */
  readStream(stream: string): Promise<readonly RecordedEvent[]>;
  /** Several streams at once; a missing one is an empty list. At most 1,000. @throws LogUnavailable */
  readStreams(streams: readonly string[]): Promise<ReadonlyMap<string, readonly RecordedEvent[]>>;
  /**
   * Events with a position above `after`, in order, at most `limit`; none means the end was reached. Never skips a late commit.
   * @throws LogUnavailable; UnreadableEvent where the very first of them can't be read (what stands before such a one is given first)
   */
  readAll(after: bigint, limit: number): Promise<readonly RecordedEvent[]>;
  /** Position of the last event, 0 when there is none. @throws LogUnavailable */
  head(): Promise<bigint>;
  /** Calls back after each append of this process; a hint for local readers, never the only way to learn of an event. */
  onAppended(listener: (events: readonly RecordedEvent[]) => void): () => void;
}

/** The log could not be written or read with certainty. Nothing may be dispatched on a guess. */
export class LogUnavailable extends Error {
  override readonly name = 'LogUnavailable';
}

/** A stored event is no event any more: its text was damaged. A stream that holds one can't be folded, and a reader of the log goes on behind it. */
export class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent';

  constructor(
    readonly stream: string,
    readonly position: bigint,
    options?: ErrorOptions,
  ) {
    super(`The stored event at position ${position} can't be read.`, options);
  }
}

/** More appends are waiting than the bound allows; nothing was stored. */
export class LogOverloaded extends Error {
  override readonly name = 'LogOverloaded';
}
