import { UnencodableEvent } from '#adapters/broker/cloud-events.js';
import type { EventPublisher } from '#adapters/broker/kafka/publisher.js';
import type { Logger } from '#adapters/observability/logger.js';
import type { Metrics } from '#adapters/observability/metrics.js';
import type { LeadershipTerm, RelayLeadership } from '#adapters/postgres/relay-leadership.js';
import { streamOf, type DatabaseClock, type EventLog, type RecordedEvent } from '#domain';
import { PAGE_EVENTS_MAX, readPage, type LogPage } from './log-pages.js';
import type { ParkedEvents, ParkReason } from './parked-events.js';

export interface RelayOptions {
  readonly log: Pick<EventLog, 'readAll' | 'onAppended'>;
  readonly leadership: Pick<RelayLeadership, 'tryAcquire' | 'close'>;
  readonly publisher: EventPublisher;
  readonly parked: ParkedEvents;
  readonly clock: DatabaseClock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'relayPublished' | 'relayPosition' | 'parkedRecords'>;
}

export interface RelayStatus {
  readonly isLeader: boolean;
  /** Age of the oldest event that is read and not yet published; 0 when there is none, and on a standby. */
  readonly oldestUnpublishedSeconds: number;
}

/** Name of the relay's checkpoint and leadership, and of the consumer that its parked events are listed under. */
export const RELAY = 'relay';

/** With what a silent leader takes to lose the lock, well inside the 10 s in which a standby has to take over. */
const STANDBY_RETRY_MS = 1_000;
/** Events of other processes are found by looking: soon while there are some, and less often the longer there are none. */
const POLL_MIN_MS = 50;
const POLL_MAX_MS = 250;
/** A page with fewer events ends at the head of the log: the relay is abreast. More is a backlog, and the next page is read at once. */
const ABREAST_EVENTS_MAX = PAGE_EVENTS_MAX / 4;
/**
 * Abreast of the log, the relay gathers for this long before the next page, since each page costs a request for each partition leader, a
 * write of the checkpoint, and a fetch in every consumer; without it pages shrink to single events. Readers see an event later by as much.
 */
const GATHER_MS = 50;
const BACK_OFF_MIN_MS = 200;
const BACK_OFF_MAX_MS = 5_000;

const STREAM_PREFIX = streamOf('');

/**
 * Publishes the log in order, at least once. One process at a time leads; it publishes a page while it reads the next, and moves the
 * checkpoint only when each event of the page is known to be stored. After a failure it goes on from the checkpoint, and readers drop what
 * they see twice by the event's id or revision.
 */
export class Relay {
  private readonly stopping = new AbortController();
  private loop: Promise<void> | null = null;
  private term: LeadershipTerm | null = null;
  /** Of the last event that is known to be published, by this process or one before it. */
  private position = 0n;
  private oldestAtMs: number | null = null;
  private appended = false;
  private endSleep: () => void = () => undefined;
  /** Whether appends may end the sleep; while backing off they may not. */
  private isIdle = false;
  private stopListening: () => void = () => undefined;

  constructor(private readonly options: RelayOptions) {}

  start(): void {
    this.stopListening = this.options.log.onAppended(() => {
      this.appended = true;
      if (this.isIdle) this.endSleep();
    });
    this.stopping.signal.addEventListener('abort', () => this.endSleep());
    this.loop = this.run();
  }

  /** Finishes the page under way, moves the checkpoint, and gives the leadership back. */
  async stop(): Promise<void> {
    this.stopListening();
    this.stopping.abort();
    await this.loop;
  }

  status(): RelayStatus {
    const isLeader = this.term?.isHeld() ?? false;
    const ageMs = isLeader && this.oldestAtMs !== null ? this.options.clock.nowMs() - this.oldestAtMs : 0;
    return { isLeader, oldestUnpublishedSeconds: Math.max(0, ageMs / 1_000) };
  }

  private get isStopping(): boolean {
    return this.stopping.signal.aborted;
  }

  private async run(): Promise<void> {
    const { leadership, logger } = this.options;
    let wasStandby = false;
    while (!this.isStopping) {
      const term = await leadership.tryAcquire().catch((err: unknown) => {
        logger.warn({ err }, 'the leadership could not be asked for');
        return null;
      });
      if (term) {
        wasStandby = false;
        await this.lead(term);
      } else if (!wasStandby) {
        wasStandby = true;
        logger.info({ role: 'standby' }, 'waiting for the leadership of the relay');
      }
      await this.sleep(STANDBY_RETRY_MS);
    }
    await leadership.close();
  }

  private async lead(term: LeadershipTerm): Promise<void> {
    const { logger } = this.options;
    this.term = term;
    this.reach(term.position);
    logger.info({ role: 'leader', position: term.position }, 'leading the relay');
    const endSleep = () => this.endSleep();
    term.signal.addEventListener('abort', endSleep);
    let failures = 0;
    const isLeading = () => !this.isStopping && term.isHeld();
    try {
      while (isLeading()) {
        try {
          await this.publishOn(term, isLeading, () => (failures = 0));
        } catch (err) {
          if (!term.isHeld()) break;
          failures++;
          const delayMs = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MIN_MS * 2 ** Math.min(failures - 1, 10));
          logger.error(
            { err, position: this.position, delay_ms: delayMs },
            'publishing stumbled and will begin again behind this position',
          );
          await this.sleep(delayMs);
        }
      }
    } finally {
      if (!this.isStopping) logger.warn({ role: 'standby', position: this.position }, 'the leadership of the relay is lost');
      term.signal.removeEventListener('abort', endSleep);
      this.term = null;
      this.oldestAtMs = null;
      await term.release();
    }
  }

  /** From the checkpoint on, for as long as `isLeading`. @throws whatever keeps a page from being read, published or recorded */
  private async publishOn(term: LeadershipTerm, isLeading: () => boolean, onProgress: () => void): Promise<void> {
    let pollMs = POLL_MIN_MS;
    let next: Promise<LogPage> | null = null;
    while (isLeading()) {
      this.appended = false;
      const page: LogPage = await (next ?? readPage(this.options.log, this.position));
      next = null;
      if (page.kind === 'events' && page.events.length === 0) {
        this.oldestAtMs = null;
        await this.idle(pollMs);
        pollMs = Math.min(POLL_MAX_MS, pollMs * 1.5);
        continue;
      }
      pollMs = POLL_MIN_MS;
      const last = page.kind === 'events' ? page.events.at(-1)!.position : page.error.position;
      if (!isLeading()) return;
      const isAbreast = page.kind === 'events' && page.events.length < ABREAST_EVENTS_MAX;
      if (!isAbreast) {
        next = readPage(this.options.log, last);
        next.catch(() => undefined); // Thrown where it is awaited; until then it may lie, and is left there after a failure.
      }
      if (page.kind === 'events') await this.publish(page.events, term);
      else await this.park(page.error, 'unreadable_event', page.error);
      if (!(await term.advance(last))) return;
      this.reach(last);
      onProgress();
      if (isAbreast) await this.sleep(GATHER_MS);
    }
  }

  private async publish(events: readonly RecordedEvent[], term: LeadershipTerm): Promise<void> {
    this.oldestAtMs = Date.parse(events[0]!.metadata.at);
    let rest = events;
    // Each turn but the last leaves one event out: at most a page's length.
    while (rest.length > 0) {
      try {
        await this.options.publisher.publish(rest, term.signal);
        break;
      } catch (error) {
        if (!(error instanceof UnencodableEvent)) throw error;
        const { position } = error;
        const stream = rest.find((event) => event.position === position)!.stream;
        await this.park({ position, stream }, 'unencodable_event', error);
        rest = rest.filter((event) => event.position !== position);
      }
    }
    this.options.metrics.relayPublished.inc(rest.length);
  }

  private reach(position: bigint): void {
    this.position = position;
    this.options.metrics.relayPosition.set(Number(position));
  }

  /** An event that nobody can read or send would keep all later ones back for ever: it is written down, told, and passed over. */
  private async park(event: Pick<RecordedEvent, 'position' | 'stream'>, reason: ParkReason, err: Error): Promise<void> {
    const { position, stream } = event;
    const operationId = stream.startsWith(STREAM_PREFIX) ? stream.slice(STREAM_PREFIX.length) : null;
    this.options.logger.error({ err, position, operation_id: operationId, reason_code: reason }, 'an event was parked and not published');
    await this.options.parked.park({ position, operationId, reason });
    this.options.metrics.parkedRecords.inc({ consumer: RELAY, reason });
  }

  private async idle(ms: number): Promise<void> {
    if (this.appended) return;
    this.isIdle = true;
    await this.sleep(ms);
    this.isIdle = false;
  }

  /** Until `ms` are over, the relay is stopped, the term ends, or, where it is idle, something is appended. */
  private sleep(ms: number): Promise<void> {
    if (this.isStopping) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.endSleep = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
