import { LOG_AS_TOPIC, type ParkedRecords } from '#adapters/postgres/parked-records.js';

/** Events that could not be handed on, listed for people beside the records that consumers set aside. */
export interface ParkedEvents {
  /** Once for each position, however often it is called. */
  park(event: ParkedEvent): Promise<void>;
}

export interface ParkedEvent {
  readonly position: bigint;
  /** Null where its stream is not that of an operation. */
  readonly operationId: string | null;
  readonly reason: ParkReason;
}

/** `unreadable_event`: its stored text is damaged. `unencodable_event`: CloudEvents, or the topic, can't carry it. */
export type ParkReason = 'unreadable_event' | 'unencodable_event';

/** Lists them with the records that consumers have put aside. */
export class ListedParkedEvents implements ParkedEvents {
  constructor(
    private readonly records: Pick<ParkedRecords, 'add'>,
    private readonly consumer: string,
  ) {}

  park({ position, operationId, reason }: ParkedEvent): Promise<void> {
    const place = { consumer: this.consumer, topic: LOG_AS_TOPIC, partition: 0, offset: position };
    return this.records.add({ ...place, operationId, reason });
  }
}
