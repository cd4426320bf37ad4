import { absentOperation, foldRecorded, type EventLog, type LoadedOperation, type RecordedEvent } from '#domain';
import type { Logger } from '#adapters/observability/logger.js';

/** How late an outcome that another process recorded is noticed: what a person calls at once. */
const POLL_MS = 250;
/** One read of the log may name 1,000 streams, and each watch holds a connection besides. */
const WATCHES_MAX = 1_000;

/** Whether there is nothing more to wait for: a final state, or a doubt that may take hours. */
export function isSettled({ state }: LoadedOperation): boolean {
  return state.status === 'succeeded' || state.status === 'failed_final' || state.status === 'unknown';
}

/**
 * Requests that wait for their operation's outcome. Appends of this process wake them at once; the log, asked every 250 ms for all of
 * them together, is what counts when another process does the work.
 */
export class OperationWatches {
  private readonly byStream = new Map<string, Set<OperationWatch>>();
  private count = 0;
  private ended = false;
  private polling = false;
  private timer: NodeJS.Timeout | null = null;
  private readonly stopListening: () => void;

  constructor(
    private readonly log: EventLog,
    private readonly logger: Logger,
    private readonly watchesMax = WATCHES_MAX,
  ) {
    this.stopListening = log.onAppended((events) => this.tell(events));
  }

  /** Begins to collect a stream's events; null where too many wait already, or nobody may any more. Each watch has to be ended. */
  begin(stream: string): OperationWatch | null {
    if (this.ended || this.count >= this.watchesMax) return null;
    const watch = new OperationWatch(stream, (ended) => this.remove(ended));
    const watches = this.byStream.get(stream) ?? new Set();
    this.byStream.set(stream, watches.add(watch));
    this.count++;
    this.timer ??= setInterval(() => void this.poll(), POLL_MS);
    return watch;
  }

  get size(): number {
    return this.count;
  }

  /** Lets everybody go with what is known by now; for shutdown. */
  endAll(): void {
    this.ended = true;
    for (const watches of [...this.byStream.values()]) for (const watch of [...watches]) watch.end();
    this.stopListening();
  }

  private tell(events: readonly RecordedEvent[]): void {
    if (this.count === 0) return;
    for (const event of events) {
      const watches = this.byStream.get(event.stream);
      if (watches) for (const watch of watches) watch.add(event);
    }
  }

  private async poll(): Promise<void> {
    // A slow log must not be asked twice at once.
    if (this.polling) return;
    this.polling = true;
    try {
      const streams = await this.log.readStreams([...this.byStream.keys()]);
      for (const [stream, events] of streams) {
        const watches = this.byStream.get(stream);
        if (!watches || events.length === 0) continue;
        const loaded = foldRecorded(absentOperation(stream), events);
        for (const watch of watches) watch.replace(loaded);
      }
    } catch (error) {
      // What they know stays true; they wait on, until their time is up.
      this.logger.warn({ err: error, count: this.count }, 'waiting operations could not be read');
    } finally {
      this.polling = false;
    }
  }

  private remove(watch: OperationWatch): void {
    const watches = this.byStream.get(watch.stream);
    if (!watches?.delete(watch)) return;
    if (watches.size === 0) this.byStream.delete(watch.stream);
    this.count--;
    if (this.count === 0 && this.timer) {
      clearInterval(this.timer);
      this.timer = null;
    }
  }
}

/** More events than an operation gets while one request waits; beyond it the next poll tells. */
const PENDING_EVENTS_MAX = 64;

/** One request that waits. It collects from its beginning, so that nothing recorded between the append and the wait is missed. */
export class OperationWatch {
  private readonly pending: RecordedEvent[] = [];
  private current: LoadedOperation | null = null;
  private wake: (() => void) | null = null;
  private ended = false;

  constructor(
    readonly stream: string,
    private readonly onEnd: (watch: OperationWatch) => void,
  ) {}

  /** The operation once it is settled, or as it is when the time is up or the caller has gone; always the newest that is known. */
  async settled<T extends LoadedOperation>(from: T, timeoutMs: number, gone: AbortSignal): Promise<T> {
    this.current = from;
    this.foldPending();
    if (!isSettled(this.current) && !gone.aborted && !this.ended) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        gone.addEventListener('abort', () => resolve(), { once: true });
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      // Whatever woke it: the timer must not outlive the wait.
      this.wake?.();
    }
    return this.current as T;
  }

  add(event: RecordedEvent): void {
    if (this.pending.length < PENDING_EVENTS_MAX) this.pending.push(event);
    if (this.current) this.foldPending();
  }

  /** Takes over what was read from the log, unless more is known already. */
  replace(loaded: LoadedOperation): void {
    if (!this.current || revisionOf(loaded) <= revisionOf(this.current)) return;
    this.current = loaded;
    this.foldPending();
  }

  end(): void {
    this.ended = true;
    this.onEnd(this);
    this.wake?.();
  }

  private foldPending(): void {
    for (const event of this.pending.splice(0)) {
      // Our own events are folded in already; one that does not follow is left to the next poll.
      if (event.revision === revisionOf(this.current!) + 1) this.current = foldRecorded(this.current!, [event]);
    }
    if (isSettled(this.current!)) this.wake?.();
  }
}

function revisionOf({ state }: LoadedOperation): number {
  return state.status === 'absent' ? -1 : state.revision;
}
