import {
  CHAIN_START,
  chainHash,
  UnreadableEvent,
  type AppendRequest,
  type EventMetadata,
  type Hashing,
  type OperationEvent,
  type RecordedEvent,
} from '#domain';

/** An event as its bytes are stored; the chain covers exactly these texts. */
export interface StoredEvent {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
  readonly chain: string;
}

/** More events than any decision makes at once: a claim with its plan, or an outcome with its conclusions. */
export const EVENTS_PER_APPEND_MAX = 16;

/** PostgreSQL's `integer`, with room for the events of one append. */
const REVISION_MAX = 2 ** 31 - 1 - EVENTS_PER_APPEND_MAX;
const STREAM = /^[\x21-\x7e]{1,100}$/;
const EVENT_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const CHAIN = /^[0-9a-f]{64}$/;
const STREAMS_PER_READ_MAX = 1_000;

/** @throws RangeError for a request that no log could store: it must not get as far as a batch that it shares with others */
export function encodeAppend(hashing: Hashing, request: AppendRequest): StoredEvent[] {
  checkAppend(request);
  const { events, previousChain } = request;
  let chain = previousChain ?? CHAIN_START;
  let metadataOf: EventMetadata | null = null;
  let metadata = '';
  return events.map(({ id, event, metadata: own }) => {
    // Events of one command share one metadata object: its text is made once.
    if (own !== metadataOf) metadata = JSON.stringify((metadataOf = own));
    const stored = { id, type: event.type, data: JSON.stringify(event.data), metadata };
    chain = chainHash(hashing, chain, stored);
    return { ...stored, chain };
  });
}

function checkAppend({ stream, expectedRevision, previousChain, events }: AppendRequest): void {
  const { length } = events;
  if (length < 1 || length > EVENTS_PER_APPEND_MAX) {
    throw new RangeError(`An append takes 1 to ${EVENTS_PER_APPEND_MAX} events, not ${length}; split it where a part may stand alone.`);
  }
  if (!STREAM.test(stream)) throw new RangeError('stream must be 1 to 100 printable ASCII characters; derive it from the operation id.');
  const isNew = expectedRevision === 'no_stream';
  if (!isNew && !(Number.isInteger(expectedRevision) && expectedRevision >= 0 && expectedRevision <= REVISION_MAX)) {
    throw new RangeError(`expectedRevision must be 'no_stream' or 0 to ${REVISION_MAX}; take it from the last event that was read.`);
  }
  if (isNew ? previousChain !== null : previousChain === null || !CHAIN.test(previousChain)) {
    throw new RangeError("previousChain must be null with 'no_stream', otherwise 64 hex digits: the chain hash at expectedRevision.");
  }
  if (events.some(({ id }) => !EVENT_ID.test(id))) {
    throw new RangeError('id of an event must be a UUID in lower case; make it with Hashing.uuid5.');
  }
}

/** @throws RangeError for more streams than one read may ask for */
export function checkReadStreams(streams: readonly string[]): void {
  if (streams.length <= STREAMS_PER_READ_MAX) return;
  throw new RangeError(`At most ${STREAMS_PER_READ_MAX} streams are read at once, not ${streams.length}; read them in parts.`);
}

/** @throws RangeError for a place or a size that no read of the log can have */
export function checkReadAll(after: bigint, limit: number): void {
  if (after < 0n) throw new RangeError('after must be 0 (the beginning) or the position of an event.');
  if (!Number.isInteger(limit) || limit < 1) throw new RangeError(`limit must be a whole number from 1, not ${limit}.`);
}

/** @throws UnreadableEvent */
export function decodeEvent(stored: StoredEvent & { stream: string; revision: number; position: bigint }): RecordedEvent {
  const { id, stream, revision, position, chain } = stored;
  try {
    const event = { type: stored.type, data: JSON.parse(stored.data) } as OperationEvent;
    return { id, stream, revision, position, chain, event, metadata: JSON.parse(stored.metadata) as EventMetadata };
  } catch {
    // The parser's own error quotes the text.
    throw new UnreadableEvent(stream, position);
  }
}

/** As many as can be read before the first that can't. @throws UnreadableEvent where that is the very first */
export function decodeUntilUnreadable<Row>(rows: readonly Row[], decode: (row: Row) => RecordedEvent): RecordedEvent[] {
  const events: RecordedEvent[] = [];
  for (const row of rows) {
    try {
      events.push(decode(row));
    } catch (error) {
      if (events.length === 0 || !(error instanceof UnreadableEvent)) throw error;
      return events;
    }
  }
  return events;
}

/** What was just appended, as it will be read back. */
export function recordedEvents(request: AppendRequest, stored: readonly StoredEvent[], firstPosition: bigint): RecordedEvent[] {
  const firstRevision = request.expectedRevision === 'no_stream' ? 0 : request.expectedRevision + 1;
  return request.events.map(({ id, event, metadata }, index) => ({
    id,
    event,
    metadata,
    stream: request.stream,
    revision: firstRevision + index,
    position: firstPosition + BigInt(index),
    chain: stored[index]!.chain,
  }));
}

/**
 * Whether a whole stream still gives the hashes that were stored with it. The texts are made anew from what was read, which gives the
 * stored bytes again as long as nothing was changed: the log holds what `JSON.stringify` wrote, and that is stable under parsing.
 */
export function chainIsIntact(hashing: Hashing, events: readonly RecordedEvent[]): boolean {
  let previous = CHAIN_START;
  for (const { id, event, metadata, chain } of events) {
    const stored = { id, type: event.type, data: JSON.stringify(event.data), metadata: JSON.stringify(metadata) };
    if (chainHash(hashing, previous, stored) !== chain) return false;
    previous = chain;
  }
  return true;
}
