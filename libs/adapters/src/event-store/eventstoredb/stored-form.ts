import { jsonEvent, type EventData, type Position } from '@eventstore/db-client';
import { streamOf, UnreadableEvent, type EventMetadata, type NewEvent, type OperationEvent, type RecordedEvent } from '#domain';
import type { StoredEvent } from '../encoding.js';

/** The streams that are ours; the rest of `$all` is somebody else's. */
export const STREAM_PREFIX = streamOf('');

/** Servers before 22.6 say this in place of a position where they read a single stream. */
const NO_POSITION_FROM = 2n ** 63n;

/** What is read here of an event as the client gives it. */
export interface ReadEvent {
  readonly streamId: string;
  readonly id: string;
  readonly revision: bigint;
  readonly type: string;
  readonly data: unknown;
  readonly metadata?: unknown;
  readonly isJson: boolean;
  readonly position?: Position;
}

type Json = Record<string, unknown>;

/** The chain hash rides in the metadata, as its last member. */
export function toEventData({ id, event, metadata }: NewEvent, { chain }: StoredEvent): EventData {
  return jsonEvent({ id, type: event.type, data: event.data as unknown as Json, metadata: { ...metadata, chain } });
}

/** @throws UnreadableEvent for what this log has not written so */
export function toRecordedEvent(read: ReadEvent): RecordedEvent {
  const { id, type, streamId: stream, metadata: withChain, data } = read;
  const position = positionOf(read);
  const isOurs = read.isJson && isObject(data) && isObject(withChain) && typeof withChain.chain === 'string';
  if (!isOurs) throw new UnreadableEvent(stream, position);
  const { chain, ...metadata } = withChain;
  return {
    ...{ id, stream, revision: Number(read.revision), chain: chain as string, position },
    event: { type, data } as unknown as OperationEvent,
    metadata: metadata as unknown as EventMetadata,
  };
}

function positionOf({ position }: ReadEvent): bigint {
  if (position && position.commit < NO_POSITION_FROM) return position.commit;
  throw new Error('The server tells no positions where it reads a stream; it must be 22.6 or later.');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** About what an event takes in memory, in bytes: the client has parsed it, so its length is not known any more. */
export function weightOf({ event, metadata }: RecordedEvent): number {
  return weigh(event.data) + weigh(metadata) + 300;
}

function weigh(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let sum = 16;
  for (const part of Object.values(value)) sum += 16 + weigh(part);
  return sum;
}
