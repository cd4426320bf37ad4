import type { FeedConsumer, RecordedEvent } from '#domain';
import { isPassing } from './passing-faults.js';

interface Waiting {
  readonly events: readonly RecordedEvent[];
  readonly checkWanted: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Bounds one call of the consumer, which is one statement. A chunk that is larger goes alone. */
const TURN_EVENTS_MAX = 4_000;

/**
 * Lets the partitions of a feed share calls of its consumer: what they bring while one call is on its way goes into the next. A page of the
 * log is spread over all partitions, and without this each of its parts would be a statement and a commit of its own. A chunk alone never
 * waits for company.
 *
 * Waiting is bounded by the partitions: each has one chunk here at most, and brings the next when that is taken.
 */
export class SharedTurns {
  private queue: Waiting[] = [];
  private isRunning = false;

  constructor(private readonly consumer: FeedConsumer) {}

  /**
   * @param checkWanted called when the chunk's turn has come; where it throws, the events are not handed over
   * @throws what `checkWanted` or the consumer throws; the latter is told of these events alone, unless it says nothing about events at all
   */
  handle(events: readonly RecordedEvent[], checkWanted: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.queue.push({ events, checkWanted, resolve, reject });
      if (!this.isRunning) void this.run();
    });
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    while (this.queue.length > 0) {
      // One turn of the event loop lets the partitions of the same answer of the broker join.
      await new Promise((resolve) => setImmediate(resolve));
      await this.serve(this.take());
    }
    this.isRunning = false;
  }

  private take(): Waiting[] {
    const turn: Waiting[] = [];
    let size = 0;
    for (const waiting of this.queue) {
      if (turn.length > 0 && size + waiting.events.length > TURN_EVENTS_MAX) break;
      turn.push(waiting);
      size += waiting.events.length;
    }
    this.queue = this.queue.slice(turn.length);
    return turn.filter(isWanted);
  }

  private async serve(turn: readonly Waiting[]): Promise<void> {
    if (turn.length === 0) return;
    try {
      await this.consumer.handle(turn.length === 1 ? turn[0]!.events : turn.flatMap(({ events }) => events));
      for (const { resolve } of turn) resolve();
    } catch (error) {
      if (turn.length === 1 || isPassing(error)) for (const { reject } of turn) reject(error);
      // One partition's events are refused; the others do not pay for it.
      else for (const waiting of turn) await this.serve([waiting].filter(isWanted));
    }
  }
}

/** A chunk that is not wanted any more is told so, and dropped. */
function isWanted({ checkWanted, reject }: Waiting): boolean {
  try {
    checkWanted();
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}
