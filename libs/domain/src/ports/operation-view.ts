import type { KnownOperation, OperationStatus } from '../operation/state.js';
import type { RecordedEvent } from './event-log.js';

/** The status view: one row an operation, folded from the log; it may lag behind it. Only lists read it. */
export interface OperationView {
  list(query: ListQuery): Promise<ListPage>;
}

/** Longer than any identity value (a client's key has up to 255 characters) and any sane provider's id; longer ones can't be searched for. */
export const SEARCH_TERM_LENGTH_MAX = 500;

export interface ListQuery {
  readonly tenant: string;
  readonly status: OperationStatus | null;
  readonly actionType: string | null;
  readonly workflowId: string | null;
  /** Exact match on an operation id, an identity value, or a provider operation id. */
  readonly term: string | null;
  /** Opaque, from an earlier page; null for the first. @throws InvalidCursor */
  readonly cursor: string | null;
  /** 1-100. */
  readonly limit: number;
}

export interface ListPage {
  /** Newest first. */
  readonly operations: readonly KnownOperation[];
  readonly nextCursor: string | null;
}

export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor';
}

/** Takes events in order per operation, at least once; a repeated or older one changes nothing, within one call too. */
export interface FeedConsumer {
  /** Names the checkpoint. */
  readonly name: string;
  handle(events: readonly RecordedEvent[]): Promise<void>;
}
