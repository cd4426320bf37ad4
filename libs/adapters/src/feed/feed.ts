import type { FeedConsumer } from '#domain';

/** Hands events to one consumer, in order per operation, at least once, for as long as it runs. */
export interface Feed {
  start(): void;
  /** Finishes the batch under way. */
  stop(): Promise<void>;
  /** Whether it can be expected to deliver. */
  healthy(): boolean;
  /** Events that are there and not yet handed over; null where that is not known now. */
  lag(): Promise<number | null>;
}

export interface FeedOptions {
  readonly consumer: FeedConsumer;
  /** How long events may gather once some are there: what began and ended meanwhile is one change. */
  readonly gatherMs: number;
  readonly onError: (error: Error) => void;
  readonly onProgress: (position: bigint) => void;
  /** A record that could not be used is put aside; it was about this operation. The feed goes on only after this has resolved. */
  readonly onParked: (operationId: string) => Promise<void>;
}

/** Which way the events come; the composing program decides. */
export type OpenFeed = (options: FeedOptions) => Feed;
