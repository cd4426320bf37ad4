import { setTimeout as delay } from 'node:timers/promises';
import { LogOverloaded, LogUnavailable, type AppendRequest, type AppendResult, type Hashing, type RecordedEvent } from '#domain';
import { encodeAppend, recordedEvents, type StoredEvent } from '../encoding.js';
import { AppendRefused, AppendUncertain, type AppendCommand, type AppendConnection, type CommandRow } from './append-connection.js';

interface Waiting {
  readonly request: AppendRequest;
  readonly command: AppendCommand;
  readonly bytes: number;
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: Error) => void;
}

export interface RetryLimits {
  readonly maxMs: number;
  readonly delayMs: number;
}

/** One statement of this size keeps the lock for a few milliseconds; larger ones gain nothing more. */
const BATCH_COMMANDS_MAX = 128;
/** Payloads of 256 KiB would make 128 commands a statement of 40 MB; a few megabytes stay well inside both sides' buffers. */
const BATCH_BYTES_MAX = 4_000_000;
/** About two seconds of full load; whoever waits longer is better served by a refusal. */
const QUEUE_MAX = 5_000;
/** A queue of the largest payloads would otherwise take more than a gigabyte. */
const QUEUE_BYTES_MAX = 64_000_000;
/** While the database restarts a caller is held; longer than this it is told that nobody knows. */
const UNCERTAIN_RETRY: RetryLimits = { maxMs: 10_000, delayMs: 100 };

/**
 * Gathers appends into one statement. There is no timer: whatever arrives while a batch is on its way becomes the next one, so one
 * caller alone never waits for company and many callers share the cost of one commit.
 */
export class AppendBatcher {
  private queue: Waiting[] = [];
  private queueBytes = 0;
  private running: Promise<void> | null = null;
  private closed = false;

  constructor(
    private readonly connection: Pick<AppendConnection, 'append' | 'close'>,
    private readonly hashing: Hashing,
    /** `bytes`: what the texts of these events take. */
    private readonly onWritten: (events: readonly RecordedEvent[], bytes: number) => void,
    private readonly retry = UNCERTAIN_RETRY,
  ) {}

  /** @throws LogUnavailable, LogOverloaded, RangeError for a request that no log could store */
  async append(request: AppendRequest): Promise<AppendResult> {
    if (this.closed) throw new LogUnavailable('The event log is closed.');
    if (this.queue.length >= QUEUE_MAX) throw new LogOverloaded(`${QUEUE_MAX} appends are already waiting.`);
    if (this.queueBytes >= QUEUE_BYTES_MAX) throw new LogOverloaded(`Appends of ${QUEUE_BYTES_MAX} bytes are already waiting.`);
    const events = encodeAppend(this.hashing, request);
    const command: AppendCommand = {
      stream: request.stream,
      expected: request.expectedRevision === 'no_stream' ? -1 : request.expectedRevision,
      events,
      newDataKey: request.newDataKey ?? null,
    };
    return new Promise((resolve, reject) => {
      const bytes = sizeOf(events);
      this.queue.push({ request, command, bytes, resolve, reject });
      this.queueBytes += bytes;
      this.running ??= this.run();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.running;
    await this.connection.close();
  }

  private async run(): Promise<void> {
    while (this.queue.length > 0) {
      // One turn of the event loop lets the requests that have already arrived join.
      await new Promise((resolve) => setImmediate(resolve));
      await this.process(this.takeBatch());
    }
    this.running = null;
  }

  private async process(batch: readonly Waiting[]): Promise<void> {
    try {
      this.settle(batch, await this.store(batch));
    } catch (error) {
      if (error instanceof AppendRefused && batch.length > 1) {
        // One of them can't be stored. Which one shows when each stands alone; its neighbours do not pay for it.
        for (const waiting of batch) await this.process([waiting]);
        return;
      }
      // Those behind have waited as long as these: with the database away they would wait that long again, batch after batch.
      const left = error instanceof AppendUncertain ? this.takeAll() : [];
      const unavailable = new LogUnavailable('Events could not be appended with certainty.', { cause: error });
      for (const { reject } of [...batch, ...left]) reject(unavailable);
    }
  }

  /** The front of the queue, as far as the bounds allow; a second append to the same stream waits for the result of the first. */
  private takeBatch(): Waiting[] {
    const batch: Waiting[] = [];
    const left: Waiting[] = [];
    const streams = new Set<string>();
    let bytes = 0;
    for (const waiting of this.queue) {
      const { stream } = waiting.command;
      const fits = batch.length < BATCH_COMMANDS_MAX && (batch.length === 0 || bytes + waiting.bytes <= BATCH_BYTES_MAX);
      if (fits && !streams.has(stream)) {
        bytes += waiting.bytes;
        batch.push(waiting);
      } else {
        left.push(waiting);
      }
      // Also when it has to wait: what comes behind it on the same stream must not overtake it.
      streams.add(stream);
    }
    this.queue = left;
    this.queueBytes -= bytes;
    return batch;
  }

  private takeAll(): Waiting[] {
    const all = this.queue;
    this.queue = [];
    this.queueBytes = 0;
    return all;
  }

  /** Stores a batch; after a broken connection sends the very same one again, which the log recognises by its event ids. */
  private async store(batch: readonly Waiting[]): Promise<CommandRow[]> {
    const commands = batch.map(({ command }) => command);
    const giveUpAt = performance.now() + this.retry.maxMs;
    for (;;) {
      try {
        return await this.connection.append(commands);
      } catch (error) {
        if (!(error instanceof AppendUncertain) || performance.now() >= giveUpAt) throw error;
        await delay(this.retry.delayMs);
      }
    }
  }

  private settle(batch: readonly Waiting[], rows: readonly CommandRow[]): void {
    const written: RecordedEvent[] = [];
    let writtenBytes = 0;
    batch.forEach(({ request, command, bytes, resolve }, index) => {
      const { firstPosition, duplicate, revisionBefore } = rows[index]!;
      if (firstPosition !== null) {
        const events = recordedEvents(request, command.events, firstPosition);
        written.push(...events);
        writtenBytes += bytes;
        resolve({ outcome: 'written', events });
      } else if (duplicate) {
        resolve({ outcome: 'duplicate', revision: command.expected + command.events.length });
      } else {
        resolve({ outcome: 'conflict', actualRevision: revisionBefore === -1 ? 'no_stream' : revisionBefore });
      }
    });
    if (written.length > 0) this.onWritten(written, writtenBytes);
  }
}

function sizeOf(events: readonly StoredEvent[]): number {
  return events.reduce((bytes, { data, metadata }) => bytes + data.length + metadata.length, 0);
}
