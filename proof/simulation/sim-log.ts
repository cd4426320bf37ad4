import { LogUnavailable, type AppendRequest, type AppendResult, type EventLog, type RecordedEvent } from '#domain';
import type { Random } from './random.js';
import type { Storm } from './scenario.js';
import type { SimProcess } from './sim-process.js';
import type { Tail, VisibleLog } from './stores.js';

/** Which faults are on now, and how likely each is. */
export class Weather {
  private readonly storms = new Map<Storm, number>();

  constructor(private readonly random: Random) {}

  begin(what: Storm, share: number): void {
    this.storms.set(what, share);
  }

  end(what: Storm): void {
    this.storms.delete(what);
  }

  calm(): void {
    this.storms.clear();
  }

  strikes(what: Storm): boolean {
    const share = this.storms.get(what);
    return share !== undefined && this.random.chance(share);
  }
}

/** An event is seen by readers of the whole log so much later at most, when it is. */
const LATE_VISIBLE_MS = 3_000;

export interface StoreEnd {
  readonly log: VisibleLog;
  readonly weather: Weather;
  readonly random: Random;
  readonly tail: Tail;
  /** Told of what was stored, at the moment of storing. */
  readonly onStored: (events: readonly RecordedEvent[]) => void;
}

/** One process's way to the log: answers get lost, stored or not, and a driver that has lost one tries again. */
export class SimLog implements EventLog {
  private readonly listeners = new Set<(events: readonly RecordedEvent[]) => void>();

  constructor(
    private readonly process: SimProcess,
    private readonly store: StoreEnd,
  ) {}

  async append(request: AppendRequest): Promise<AppendResult> {
    const result = await this.process.port(() => this.keep(request));
    if (result.outcome === 'written') for (const listener of this.listeners) listener(result.events);
    return result;
  }

  readStream: EventLog['readStream'] = (stream) => this.read(() => this.store.log.inner.readStream(stream));
  readStreams: EventLog['readStreams'] = (streams) => this.read(() => this.store.log.inner.readStreams(streams));
  head: EventLog['head'] = () => this.read(() => this.store.log.inner.head());

  readAll: EventLog['readAll'] = (after, limit) =>
    this.read(async () => this.store.tail(await this.store.log.inner.readAll(after, limit), this.store.log.isVisible));

  onAppended(listener: (events: readonly RecordedEvent[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private read<T>(effect: () => Promise<T>): Promise<T> {
    return this.process.port(() => {
      if (this.store.weather.strikes('database')) throw new LogUnavailable('The log could not be read.');
      return effect();
    });
  }

  private async keep(request: AppendRequest): Promise<AppendResult> {
    const { weather, log, random, onStored } = this.store;
    if (weather.strikes('append_lost')) throw new LogUnavailable('The append was not stored.');
    const result = await log.inner.append(request);
    if (result.outcome === 'written') {
      if (weather.strikes('late_visible')) log.hide(result.events, random.between(1, LATE_VISIBLE_MS));
      onStored(result.events);
    }
    if (weather.strikes('append_stored_answer_lost')) throw new LogUnavailable('The answer to an append was lost.');
    return weather.strikes('append_twice') ? log.inner.append(request) : result;
  }
}
