import { encodeCloudEvent } from '#adapters/broker/cloud-events.js';
import type { EventPublisher } from '#adapters/broker/kafka/publisher.js';
import type { RecordedEvent } from '#domain';

/** Keeps what it is handed, and can be told to fail or to wait as a broker may. */
export class RecordingPublisher implements EventPublisher {
  readonly events: RecordedEvent[] = [];
  readonly calls: bigint[][] = [];
  /** What the next calls throw, first in first out, before anything is kept. */
  readonly failures: Error[] = [];
  /** Called with each page before it is kept. */
  hold: (signal: AbortSignal | undefined) => Promise<void> = async () => undefined;

  async publish(events: readonly RecordedEvent[], signal?: AbortSignal): Promise<void> {
    this.calls.push(events.map(({ position }) => position));
    events.forEach(encodeCloudEvent);
    const failure = this.failures.shift();
    if (failure) throw failure;
    await this.hold(signal);
    this.events.push(...events);
  }

  get positions(): number[] {
    return this.events.map(({ position }) => Number(position));
  }
}
