import { FORWARDS } from '@eventstore/db-client';
import type { RecordedEvent } from '#domain';
import type { EventStoreDbConnection } from './connection.js';
import { drain } from './drain.js';
import { toRecordedEvent } from './stored-form.js';

/** Far more than an operation has; a longer stream takes further calls, each with its own deadline. */
const SEGMENT_EVENTS_MAX = 500;

/** Reads single streams; a missing one has no events. */
export class StreamReader {
  constructor(private readonly connection: EventStoreDbConnection) {}

  async readStream(stream: string): Promise<readonly RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for (;;) {
      const segment = await this.readSegment(stream, events.length, SEGMENT_EVENTS_MAX);
      events.push(...segment);
      if (segment.length < SEGMENT_EVENTS_MAX) return events;
    }
  }

  /** At most `count` events from revision `first` on. @throws Error where a revision is missing in between */
  async readSegment(stream: string, first: number, count: number): Promise<readonly RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    await this.connection.call((client, signal) => {
      const options = { fromRevision: BigInt(first), maxCount: count, direction: FORWARDS, ...this.connection.callOptions } as const;
      return drain(client.readStream(stream, options), signal, ({ event }) => {
        if (!event) return true;
        const recorded = toRecordedEvent(event);
        const expected = first + events.length;
        if (recorded.revision !== expected) throw new Error(`Stream ${stream} goes on at revision ${recorded.revision}, not ${expected}.`);
        events.push(recorded);
        return true;
      });
    });
    return events;
  }
}
