import { streamOf, UnreadableEvent, type EventLog, type FeedConsumer, type RecordedEvent } from '#domain';
import { LOG_AS_TOPIC, type ParkedRecords } from '../postgres/parked-records.js';
import type { Feed, FeedOptions, OpenFeed } from './feed.js';

export interface CheckpointStore {
  load(name: string): Promise<bigint>;
  /** False where the reader does not stand at `from`. */
  advance(name: string, from: bigint, to: bigint): Promise<boolean>;
}

export interface DirectFeedOptions {
  readonly log: EventLog;
  readonly checkpoints: CheckpointStore;
  readonly consumer: FeedConsumer;
  /** How long to let events gather once some are there: what began and ended meanwhile is one change. */
  readonly gatherMs: number;
  readonly onError: (error: Error) => void;
  readonly onProgress?: (position: bigint, events: number) => void;
  /** Puts an event aside that can't be read; the feed goes on behind it once this has resolved. Without it the feed stays in front of it. */
  readonly onUnreadable?: (event: UnreadableEvent) => Promise<void>;
}

/** Bounds one batch in memory and in the transaction that takes it; larger ones save nothing more. */
const BATCH_EVENTS_MAX = 2_000;
/** Events of other processes are found by looking; a quarter of a second is soon enough where nobody in this process waits. */
const POLL_MS = 250;
/**
 * What a consumer wrote need not have reached the disk: a crash of the database may take it back, checkpoint and all, without any query of
 * ours failing. While nothing happens the durable checkpoint is compared this often.
 */
const COMPARE_EVERY_MS = 5_000;
const RETRY_DELAY_MS = 200;
const RETRY_DELAY_MAX_MS = 5_000;

/**
 * Hands the log to one consumer, in order, at least once, from a durable checkpoint that moves only after the consumer has finished.
 * Appends of this process wake it; polling stays the truth.
 */
export class DirectFeed implements Feed {
  private position: bigint | null = null;
  private compareAt = 0;
  private stopped = false;
  private loop: Promise<void> | null = null;
  private endSleep: () => void = () => undefined;
  /** Whether new events may end the sleep; after an error they may not, or a busy log would turn the back-off into a loop. */
  private wakeable = false;
  private pending = false;
  private failing = false;
  private stopListening: () => void = () => undefined;

  constructor(private readonly options: DirectFeedOptions) {}

  start(): void {
    this.stopListening = this.options.log.onAppended(() => {
      this.pending = true;
      if (this.wakeable) this.endSleep();
    });
    this.loop = this.run();
  }

  /** Finishes the batch under way. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.stopListening();
    this.endSleep();
    await this.loop;
  }

  healthy(): boolean {
    return !this.failing;
  }

  /** In positions of the log, which count events in PostgreSQL and bytes in EventStoreDB. */
  async lag(): Promise<number> {
    const { log, checkpoints, consumer } = this.options;
    const position = this.position ?? (await checkpoints.load(consumer.name));
    return Math.max(0, Number((await log.head()) - position));
  }

  /** One batch; returns how many events it had. */
  async runOnce(): Promise<number> {
    const { checkpoints, consumer, onProgress } = this.options;
    if (performance.now() >= this.compareAt) this.position = null;
    const from = (this.position ??= await this.durablePosition());
    const events = await this.readOrPutAside(from);
    if (events instanceof UnreadableEvent) {
      this.position = (await checkpoints.advance(consumer.name, from, events.position)) ? events.position : null;
      return 1;
    }
    if (events.length === 0) return 0;
    const position = events.at(-1)!.position;
    await consumer.handle(events);
    // Where the checkpoint was taken back, so were earlier batches: they are handed over again.
    this.position = (await checkpoints.advance(consumer.name, from, position)) ? position : null;
    this.compareAt = performance.now() + COMPARE_EVERY_MS;
    onProgress?.(position, events.length);
    return events.length;
  }

  private async readOrPutAside(from: bigint): Promise<readonly RecordedEvent[] | UnreadableEvent> {
    const { log, onUnreadable } = this.options;
    try {
      return await log.readAll(from, BATCH_EVENTS_MAX);
    } catch (error) {
      if (!(error instanceof UnreadableEvent) || !onUnreadable) throw error;
      await onUnreadable(error);
      return error;
    }
  }

  private async durablePosition(): Promise<bigint> {
    const { checkpoints, consumer } = this.options;
    const position = await checkpoints.load(consumer.name);
    this.compareAt = performance.now() + COMPARE_EVERY_MS;
    return position;
  }

  private async run(): Promise<void> {
    let failures = 0;
    while (!this.stopped) {
      try {
        this.pending = false;
        const handled = await this.runOnce();
        failures = 0;
        this.failing = false;
        if (handled < BATCH_EVENTS_MAX && !this.stopped) await this.pause();
      } catch (error) {
        failures++;
        this.failing = true;
        this.position = null;
        this.options.onError(error as Error);
        await this.sleep(Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MS * 2 ** Math.min(failures - 1, 10)));
      }
    }
  }

  private async pause(): Promise<void> {
    if (!this.pending) {
      this.wakeable = true;
      await this.sleep(POLL_MS);
      this.wakeable = false;
    }
    if (this.pending) await this.sleep(this.options.gatherMs);
  }

  /** Until the feed is stopped or, where that is allowed, woken; at most `ms`. */
  private sleep(ms: number): Promise<void> {
    if (this.stopped) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.endSleep = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

export interface DirectFeedSources {
  readonly log: EventLog;
  readonly checkpoints: CheckpointStore;
  /** Where events are listed that can't be read; without it a feed stays in front of such an event. */
  readonly parked?: Pick<ParkedRecords, 'add'>;
}

/** Straight from the log: for one machine, or where no broker is wanted. */
export function directFeeds({ log, checkpoints, parked }: DirectFeedSources): OpenFeed {
  return (options) => new DirectFeed({ ...options, log, checkpoints, ...(parked && { onUnreadable: putAside(parked, options) }) });
}

function putAside(parked: Pick<ParkedRecords, 'add'>, { consumer, onParked, onError }: FeedOptions) {
  return async ({ stream, position }: UnreadableEvent): Promise<void> => {
    const operationId = stream.slice(streamOf('').length);
    const place = { consumer: consumer.name, topic: LOG_AS_TOPIC, partition: 0, offset: position };
    await parked.add({ ...place, operationId, reason: 'unreadable_event' });
    // The rest of its stream can't be folded either; whoever looks at it says so, for this operation alone.
    await onParked(operationId).catch(onError);
  };
}
