import type { ServerWritableStream } from '@grpc/grpc-js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import type { AppendReq, AppendResp, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { DoubleRecord, Expected, ProposedEvent, StoreAnswer } from './store.js';

/** A .NET tick is 100 ns; the client counts them from 1970. */
const TICKS_PER_MS = 10_000;

export function readEventOf(record: DoubleRecord, isOfAll: boolean): ReadResp {
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent();
  const id = new shared.UUID();
  id.setString(record.id);
  recorded.setId(id);
  recorded.setStreamIdentifier(identifierOf(record.stream));
  recorded.setStreamRevision(String(record.revision));
  recorded.setCommitPosition(String(record.position));
  recorded.setPreparePosition(String(record.position));
  recorded.getMetadataMap().set('type', record.type);
  recorded.getMetadataMap().set('content-type', record.contentType);
  recorded.getMetadataMap().set('created', String(record.createdMs * TICKS_PER_MS));
  recorded.setData(record.data.toString('base64'));
  recorded.setCustomMetadata(record.metadata.toString('base64'));
  const event = new streams.ReadResp.ReadEvent();
  event.setEvent(recorded);
  if (isOfAll) event.setCommitPosition(String(record.position));
  else event.setNoPosition(new shared.Empty());
  const response = new streams.ReadResp();
  response.setEvent(event);
  return response;
}

export function confirmation(subscriptionId: string): ReadResp {
  const confirmed = new streams.ReadResp.SubscriptionConfirmation();
  confirmed.setSubscriptionId(subscriptionId);
  const response = new streams.ReadResp();
  response.setConfirmation(confirmed);
  return response;
}

export function checkpointAt(position: bigint): ReadResp {
  const checkpoint = new streams.ReadResp.Checkpoint();
  checkpoint.setCommitPosition(String(position));
  checkpoint.setPreparePosition(String(position));
  const response = new streams.ReadResp();
  response.setCheckpoint(checkpoint);
  return response;
}

export function caughtUp(): ReadResp {
  const response = new streams.ReadResp();
  response.setCaughtUp(new streams.ReadResp.CaughtUp());
  return response;
}

export function streamNotFound(stream: string): ReadResp {
  const notFound = new streams.ReadResp.StreamNotFound();
  notFound.setStreamIdentifier(identifierOf(stream));
  const response = new streams.ReadResp();
  response.setStreamNotFound(notFound);
  return response;
}

export function streamIn(identifier: { getStreamName_asU8(): Uint8Array } | undefined): string {
  return Buffer.from(identifier!.getStreamName_asU8()).toString('utf8');
}

export function expectedIn(options: AppendReq.Options): Expected {
  if (options.hasRevision()) return Number(options.getRevision());
  if (options.hasNoStream()) return 'no_stream';
  return options.hasStreamExists() ? 'stream_exists' : 'any';
}

export function proposedIn(message: AppendReq.ProposedMessage): ProposedEvent {
  const metadata = message.getMetadataMap();
  return {
    id: message.getId()!.getString(),
    type: metadata.get('type')!,
    contentType: metadata.get('content-type')!,
    data: Buffer.from(message.getData_asU8()),
    metadata: Buffer.from(message.getCustomMetadata_asU8()),
  };
}

export function appendAnswer(answer: StoreAnswer, expected: Expected): AppendResp {
  const response = new streams.AppendResp();
  if (answer.outcome === 'success') {
    const position = new streams.AppendResp.Position();
    position.setCommitPosition(String(answer.position));
    position.setPreparePosition(String(answer.position));
    const success = new streams.AppendResp.Success();
    success.setCurrentRevision(String(answer.revision));
    success.setPosition(position);
    response.setSuccess(success);
    return response;
  }
  const wrong = new streams.AppendResp.WrongExpectedVersion();
  if (answer.current === null) wrong.setCurrentNoStream(new shared.Empty());
  else wrong.setCurrentRevision(String(answer.current));
  if (expected === 'no_stream') wrong.setExpectedNoStream(new shared.Empty());
  else if (expected === 'stream_exists') wrong.setExpectedStreamExists(new shared.Empty());
  else if (expected === 'any') wrong.setExpectedAny(new shared.Empty());
  else wrong.setExpectedRevision(String(expected));
  response.setWrongExpectedVersion(wrong);
  return response;
}

/** Sends one response, no faster than the client takes them. */
export async function send(call: ServerWritableStream<ReadReq, ReadResp>, response: ReadResp): Promise<void> {
  if (call.cancelled || call.write(response)) return;
  await new Promise<void>((resolve) => {
    const events = ['drain', 'close', 'cancelled'];
    const done = () => {
      for (const event of events) call.off(event, done);
      resolve();
    };
    for (const event of events) call.on(event, done);
  });
}

function identifierOf(stream: string) {
  const identifier = new shared.StreamIdentifier();
  identifier.setStreamName(Buffer.from(stream, 'utf8').toString('base64'));
  return identifier;
}
