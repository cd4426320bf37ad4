import type { AppendRequest, AppendResult, DataKey, DataKeyRecord, DataKeys, EventLog, Hashing, RecordedEvent } from '#domain';
import type { KeyWrapper } from '../../crypto/sealer.js';
import { AppendListeners } from '../append-listeners.js';
import { checkReadAll, checkReadStreams, decodeEvent, encodeAppend, type StoredEvent } from '../encoding.js';

type Row = StoredEvent & { stream: string; revision: number; position: bigint };

/** The event log without a disk: for tests and simulation. It keeps bytes, like the others, so that encoding is exercised. */
export class MemoryEventLog implements EventLog {
  private readonly rows: Row[] = [];
  private readonly streams = new Map<string, Row[]>();
  private readonly listeners = new AppendListeners();

  constructor(
    private readonly hashing: Hashing,
    private readonly dataKeys: MemoryDataKeys | null = null,
  ) {}

  async append(request: AppendRequest): Promise<AppendResult> {
    const encoded = encodeAppend(this.hashing, request);
    const stream = this.streams.get(request.stream) ?? [];
    const expected = request.expectedRevision === 'no_stream' ? -1 : request.expectedRevision;
    if (stream.length - 1 !== expected) {
      const same = encoded.every(({ id }, index) => stream[expected + 1 + index]?.id === id);
      if (same) return { outcome: 'duplicate', revision: expected + encoded.length };
      return { outcome: 'conflict', actualRevision: stream.length === 0 ? 'no_stream' : stream.length - 1 };
    }
    const rows = encoded.map((event, index) => ({
      ...event,
      stream: request.stream,
      revision: expected + 1 + index,
      position: BigInt(this.rows.length + 1 + index),
    }));
    this.rows.push(...rows);
    this.streams.set(request.stream, [...stream, ...rows]);
    if (request.newDataKey) this.dataKeys?.add(request.newDataKey);
    const events = rows.map(decodeEvent);
    this.listeners.tell(events);
    return { outcome: 'written', events };
  }

  async readStream(stream: string): Promise<readonly RecordedEvent[]> {
    return (this.streams.get(stream) ?? []).map(decodeEvent);
  }

  async readStreams(streams: readonly string[]): Promise<ReadonlyMap<string, readonly RecordedEvent[]>> {
    checkReadStreams(streams);
    return new Map(streams.map((stream) => [stream, (this.streams.get(stream) ?? []).map(decodeEvent)]));
  }

  async readAll(after: bigint, limit: number): Promise<readonly RecordedEvent[]> {
    checkReadAll(after, limit);
    return this.rows.slice(Number(after), Number(after) + limit).map(decodeEvent);
  }

  async head(): Promise<bigint> {
    return BigInt(this.rows.length);
  }

  onAppended(listener: (events: readonly RecordedEvent[]) => void): () => void {
    return this.listeners.add(listener);
  }
}

export class MemoryDataKeys implements DataKeys {
  private readonly records = new Map<string, DataKeyRecord>();

  constructor(private readonly wrapper: KeyWrapper) {}

  add(record: DataKeyRecord): void {
    this.records.set(record.keyId, record);
  }

  async load(keyIds: readonly string[]): Promise<ReadonlyMap<string, DataKey>> {
    const found = keyIds.flatMap((keyId) => this.records.get(keyId) ?? []);
    return new Map(found.map((record) => [record.keyId, this.wrapper.unwrap(record)]));
  }

  async destroy(operationId: string): Promise<number> {
    const doomed = [...this.records.values()].filter((record) => record.operationId === operationId);
    for (const { keyId } of doomed) this.records.delete(keyId);
    return doomed.length;
  }
}
