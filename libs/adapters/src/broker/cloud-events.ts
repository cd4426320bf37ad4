import type { IHeaders } from 'kafkajs';
import { streamOf, type EventMetadata, type OperationEvent, type RecordedEvent } from '#domain';

/**
 * Events as CloudEvents 1.0 in the binary mode of its Kafka protocol binding (cloudevents/spec, cloudevents/bindings/kafka-protocol-binding.md):
 * one header an attribute, named `ce_` and the attribute (3.2.3.1), `content-type` for `datacontenttype` (3.2.1), the data as they are in the
 * value (3.2.2). The binding asks for header values as UTF-8 (3.2.3) and, unlike the one for HTTP, knows no percent-encoding.
 */

/** Permanent like the events themselves: a change of meaning gets a new type. */
export const EVENT_TYPES: Record<OperationEvent['type'], string> = {
  OperationPlanned: 'onefold.operation.planned.v1',
  OperationCancelled: 'onefold.operation.cancelled.v1',
  AttemptStarted: 'onefold.operation.attempt_started.v1',
  AttemptNotSent: 'onefold.operation.attempt_not_sent.v1',
  OutcomeUnknown: 'onefold.operation.outcome_unknown.v1',
  CheckRequested: 'onefold.operation.check_requested.v1',
  OutcomeChecked: 'onefold.operation.outcome_checked.v1',
  OperationSucceeded: 'onefold.operation.succeeded.v1',
  OperationFailed: 'onefold.operation.failed.v1',
  ReviewRequested: 'onefold.operation.review_requested.v1',
  ReviewDecided: 'onefold.operation.review_decided.v1',
  EvidenceRecorded: 'onefold.operation.evidence_recorded.v1',
};

const domainTypes: ReadonlyMap<string, OperationEvent['type']> = new Map(
  Object.entries(EVENT_TYPES).map(([type, ceType]) => [ceType, type as OperationEvent['type']]),
);

const STREAM_PREFIX = streamOf('');
/** Digits of the largest revision, a 32-bit integer. */
const SEQUENCE_DIGITS = 10;

/** What a CloudEvents string may not hold (spec.md, Type System): control characters, lone surrogates, noncharacters. */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u;

export interface EncodedEvent {
  /** The operation id: all events of an operation go to one partition, in order. */
  readonly key: string;
  /** The event's data as JSON, exactly as they are stored. */
  readonly value: Buffer;
  readonly headers: Record<string, string>;
}

/** An event that CloudEvents can't carry. The message names the part and the rule, never the content. */
export class UnencodableEvent extends Error {
  override readonly name = 'UnencodableEvent';

  constructor(
    readonly position: bigint,
    what: string,
  ) {
    super(`The event at position ${position} can't be a CloudEvent: ${what}.`);
  }
}

/** @throws UnencodableEvent */
export function encodeCloudEvent(recorded: RecordedEvent): EncodedEvent {
  const { id, stream, revision, position, chain, event, metadata } = recorded;
  const type = Object.hasOwn(EVENT_TYPES, event.type) ? EVENT_TYPES[event.type] : undefined;
  if (type === undefined) throw new UnencodableEvent(position, 'its type has no CloudEvents type; add one to EVENT_TYPES');
  if (!stream.startsWith(STREAM_PREFIX)) throw new UnencodableEvent(position, 'its stream is not that of an operation');
  const operationId = stream.slice(STREAM_PREFIX.length);
  const { tenant, at, actor, correlation, causation, traceparent } = metadata;
  const attributes = {
    ce_specversion: '1.0',
    ce_id: id,
    ce_type: type,
    ce_source: sourceOf(tenant, position),
    ce_subject: operationId,
    ce_time: at,
    ce_partitionkey: operationId,
    // The sequence extension asks for values that sort as text.
    ce_sequence: String(revision).padStart(SEQUENCE_DIGITS, '0'),
    ce_position: String(position),
    ce_chain: chain,
    ce_tenant: tenant,
    ce_actor: actor,
    ce_correlation: correlation,
    ...(causation !== null && { ce_causation: causation }),
    // W3C's own name, since that is what tracing libraries look for in a record.
    ...(traceparent !== null && { traceparent }),
  };
  for (const [name, value] of Object.entries(attributes)) {
    if (FORBIDDEN.test(value)) throw new UnencodableEvent(position, `${name} holds a character that CloudEvents does not allow`);
  }
  return {
    key: operationId,
    value: Buffer.from(JSON.stringify(event.data)),
    headers: { ...attributes, 'content-type': 'application/json' },
  };
}

/** A URI reference, as `source` has to be. */
function sourceOf(tenant: string, position: bigint): string {
  try {
    return `/onefold/${encodeURIComponent(tenant)}`;
  } catch {
    throw new UnencodableEvent(position, 'ce_tenant holds a character that CloudEvents does not allow');
  }
}

/**
 * Why a record can't be read. Stable: parked records are counted and found by it.
 *
 * `missing_header`: an attribute is absent or empty. `bad_header`: it has not the form it must have. `duplicate_header`: it is there twice.
 * `key_mismatch`: key, subject and partition key are not one and the same. `no_value`: there is no value. `not_json`: the value is not JSON.
 * `bad_value`: it is not a JSON object. `structured_mode`: a CloudEvent in structured mode, which nothing here writes.
 */
export type UnreadableReason =
  'missing_header' | 'bad_header' | 'duplicate_header' | 'key_mismatch' | 'no_value' | 'not_json' | 'bad_value' | 'structured_mode';

/** A record that is no event of ours, or a damaged one. The message names header and rule, never the content. */
export class UnreadableRecord extends Error {
  override readonly name = 'UnreadableRecord';

  constructor(
    readonly reason: UnreadableReason,
    what: string,
  ) {
    super(`The record can't be read (${reason}): ${what}.`);
  }
}

/** The part of a consumed record that an event is read from. */
export interface CloudEventRecord {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers?: IHeaders | undefined;
}

/** `unknown_type`: a well-formed event of a type that this program does not know, of a newer one or of somebody else. */
export type DecodedRecord =
  { readonly kind: 'event'; readonly event: RecordedEvent } | { readonly kind: 'unknown_type'; readonly type: string };

/** @throws UnreadableRecord */
export function decodeCloudEvent(record: CloudEventRecord): DecodedRecord {
  const headers = new HeaderReader(record.headers ?? {});
  checkContentType(headers);
  headers.match('ce_specversion', /^1\.0$/);
  const ceType = headers.match('ce_type', /^[\x21-\x7e]{1,200}$/);
  const type = domainTypes.get(ceType);
  if (type === undefined) return { kind: 'unknown_type', type: ceType };
  const operationId = headers.match('ce_subject', /^[\x21-\x7e]{1,90}$/);
  const isSame = headers.required('ce_partitionkey') === operationId && utf8(record.key) === operationId;
  if (!isSame) throw new UnreadableRecord('key_mismatch', 'key, ce_partitionkey and ce_subject must be the same');
  const metadata = readMetadata(headers);
  if (headers.required('ce_source') !== `/onefold/${encodeURIComponent(metadata.tenant)}`) {
    throw new UnreadableRecord('bad_header', 'ce_source must be /onefold/ and the tenant');
  }
  const event: RecordedEvent = {
    id: headers.match('ce_id', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    stream: streamOf(operationId),
    revision: headers.integer('ce_sequence', 2 ** 31 - 1),
    position: BigInt(headers.match('ce_position', /^[1-9]\d{0,18}$/)),
    chain: headers.match('ce_chain', /^[0-9a-f]{64}$/),
    event: { type, data: readValue(record.value) } as OperationEvent,
    metadata,
  };
  return { kind: 'event', event };
}

function checkContentType(headers: HeaderReader): void {
  const contentType = headers.required('content-type').toLowerCase();
  // The binding, section 3: this prefix is how structured mode is told.
  if (contentType.startsWith('application/cloudevents')) throw new UnreadableRecord('structured_mode', 'only binary mode is read');
  if (!/^application\/json\s*(;|$)/.test(contentType)) throw new UnreadableRecord('bad_header', 'content-type must be application/json');
}

/** The order of the fields is that in which they were stored: the chain hash covers their text. */
function readMetadata(headers: HeaderReader): EventMetadata {
  return {
    tenant: headers.text('ce_tenant') ?? missing('ce_tenant'),
    at: headers.match('ce_time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/),
    actor: headers.text('ce_actor') ?? missing('ce_actor'),
    correlation: headers.text('ce_correlation') ?? missing('ce_correlation'),
    causation: headers.text('ce_causation'),
    traceparent: headers.text('traceparent'),
  };
}

function readValue(value: Buffer | null): object {
  if (value === null) throw new UnreadableRecord('no_value', 'there is no value');
  let data: unknown;
  try {
    data = JSON.parse(utf8(value) ?? '');
  } catch {
    throw new UnreadableRecord('not_json', 'the value must be JSON in UTF-8');
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new UnreadableRecord('bad_value', 'the value must be a JSON object');
  }
  return data;
}

function missing(name: string): never {
  throw new UnreadableRecord('missing_header', `${name} must be there`);
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Null for what is not there, and for what is not UTF-8. */
function utf8(bytes: Buffer | string | null): string | null {
  if (bytes === null || typeof bytes === 'string') return bytes;
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return null;
  }
}

class HeaderReader {
  constructor(private readonly headers: IHeaders) {}

  /** Null where there is no such header. */
  text(name: string): string | null {
    // Kafka has header values that are null; the types of kafkajs leave them out.
    const value = (Object.hasOwn(this.headers, name) ? this.headers[name] : null) ?? null;
    if (value === null) return null;
    if (Array.isArray(value)) throw new UnreadableRecord('duplicate_header', `${name} must be there once`);
    const text = utf8(value);
    if (text === null) throw new UnreadableRecord('bad_header', `${name} must be UTF-8`);
    return text;
  }

  /** Not empty. */
  required(name: string): string {
    return this.text(name) || missing(name);
  }

  match(name: string, form: RegExp): string {
    const text = this.required(name);
    if (!form.test(text)) throw new UnreadableRecord('bad_header', `${name} has not the form it must have`);
    return text;
  }

  integer(name: string, max: number): number {
    const value = Number(this.match(name, /^\d{1,10}$/));
    if (value > max) throw new UnreadableRecord('bad_header', `${name} must be at most ${max}`);
    return value;
  }
}
