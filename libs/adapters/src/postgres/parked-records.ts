import { orUnavailable, type Pool } from './database.js';
import { GatheringReader } from './gathering-reader.js';

/** In the list of parked records the log stands in for a topic of one partition: an event's position is its offset. */
export const LOG_AS_TOPIC = 'onefold.events';

/** Where a record stands: one place of one consumer's reading. */
export interface RecordPlace {
  /** Name of the consumer that could not take it. */
  readonly consumer: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
}

export interface ParkedRecord extends RecordPlace {
  /** Null where the record's key is no operation id. */
  readonly operationId: string | null;
  /** A stable code; see `ParkReason`. */
  readonly reason: string;
  readonly parkedAtMs: number;
}

interface ParkedRow {
  readonly consumer: string;
  readonly topic: string;
  readonly partition: number;
  readonly record_offset: string;
  readonly operation_id: string;
  readonly reason: string;
  readonly parked_at: Date;
}

/** An operation has a few dozen events; more rows of one would tell a person nothing more. */
const RECORDS_PER_OPERATION_MAX = 100;

const ADD = `insert into onefold.parked_records (consumer, topic, partition, record_offset, operation_id, reason)
values ($1, $2, $3, $4, $5, $6) on conflict do nothing`;

const FOR_OPERATIONS = `select parked.* from unnest($1::text[]) as wanted (operation_id) cross join lateral (
  select consumer, topic, partition, record_offset, operation_id, reason, parked_at from onefold.parked_records
  where operation_id = wanted.operation_id order by parked_at desc, record_offset desc limit ${RECORDS_PER_OPERATION_MAX}
) parked`;

/** The list of records that a consumer has put aside: it says for good that something about an operation was not taken in. */
export class ParkedRecords {
  private readonly byOperation = new GatheringReader<readonly ParkedRecord[]>((operationIds) => this.forOperations(operationIds), []);

  /** @param pool its commits must wait for the disk: the offset moves on behind the record right after, and that is not undone by a crash */
  constructor(private readonly pool: Pool) {}

  /** The same record again changes nothing. @throws the driver's error where it was not stored */
  async add({ consumer, topic, partition, offset, operationId, reason }: Omit<ParkedRecord, 'parkedAtMs'>): Promise<void> {
    await this.pool.query({ name: 'park-record', text: ADD, values: [consumer, topic, partition, String(offset), operationId, reason] });
  }

  /** Newest first, at most 100. @throws LogUnavailable, LogOverloaded */
  forOperation(operationId: string): Promise<readonly ParkedRecord[]> {
    return this.byOperation.read(operationId);
  }

  private async forOperations(operationIds: readonly string[]): Promise<ReadonlyMap<string, readonly ParkedRecord[]>> {
    const query = this.pool.query<ParkedRow>({ name: 'read-parked-records', text: FOR_OPERATIONS, values: [operationIds] });
    const { rows } = await orUnavailable('Reading parked records', query);
    const found = new Map<string, ParkedRecord[]>();
    for (const { record_offset: offset, operation_id: operationId, parked_at: parkedAt, ...row } of rows) {
      const record = { ...row, offset: BigInt(offset), operationId, parkedAtMs: parkedAt.getTime() };
      const records = found.get(operationId);
      if (records) records.push(record);
      else found.set(operationId, [record]);
    }
    return found;
  }
}
