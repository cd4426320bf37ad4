import {
  CHAIN_START,
  dueAfter,
  type AppendRequest,
  type AppendResult,
  type EventLog,
  type NewEvent,
  type OperationEvent,
  type RecordedEvent,
} from '#domain';
import type { Parts } from '../simulation/parts.js';

type LogPart = Parts['log'];
type Append = EventLog['append'];

/** A log that is sound in everything but its appends. */
function withAppend(log: EventLog, append: Append): EventLog {
  return {
    append,
    readStream: (stream) => log.readStream(stream),
    readStreams: (streams) => log.readStreams(streams),
    readAll: (after, limit) => log.readAll(after, limit),
    head: () => log.head(),
    onAppended: (listener) => log.onAppended(listener),
  };
}

/** Appends wherever the stream now ends, whatever the writer had read. */
export const noFence: LogPart = (log, { store }) =>
  withAppend(log, async (request) => {
    const last = (await store.readStream(request.stream)).at(-1);
    const place: Pick<AppendRequest, 'expectedRevision' | 'previousChain'> = last
      ? { expectedRevision: last.revision, previousChain: last.chain }
      : { expectedRevision: 'no_stream', previousChain: null };
    return log.append({ ...request, ...place });
  });

/** The events of a request, each exchanged for another or left out. */
function rewriting(rewrite: (event: OperationEvent, request: AppendRequest) => OperationEvent | null): LogPart {
  return (log) =>
    withAppend(log, async (request) => {
      const events = request.events.flatMap((each): NewEvent[] => {
        const event = rewrite(each.event, request);
        return event === null ? [] : [{ ...each, event }];
      });
      if (events.length === 0) return nothingWritten(log, request);
      return log.append({ ...request, events });
    });
}

/** As if it had been written: the writer folds what it wanted to write. */
async function nothingWritten(log: EventLog, request: AppendRequest): Promise<AppendResult> {
  const stored = await log.readStream(request.stream);
  const { revision, chain, position } = stored.at(-1) ?? { revision: -1, chain: CHAIN_START, position: 0n };
  const events = request.events.map((event, index): RecordedEvent => ({
    ...event,
    stream: request.stream,
    revision: revision + 1 + index,
    position,
    chain,
  }));
  return { outcome: 'written', events };
}

/** Every "not found" is taken for proof that nothing happened. */
export const absenceTrustedAtOnce = rewriting((event) =>
  event.type === 'OutcomeChecked' && event.data.verdict === 'absent' ? { ...event, data: { ...event.data, proof: true } } : event,
);

const soon = ({ events }: AppendRequest) => new Date(Date.parse(events[0]!.metadata.at) + 500).toISOString();

/** A doubt is written down as "nothing was sent", and so is tried again. */
export const retryOnUnknown = rewriting((event, request) =>
  event.type === 'OutcomeUnknown' && event.data.code !== 'key_retention_passed'
    ? { type: 'AttemptNotSent', data: { attempt: event.data.attempt, code: event.data.code, reached: false, retry_at: soon(request) } }
    : event.type === 'ReviewRequested'
      ? null
      : event,
);

/** After a while without an answer the operation is called failed. */
export const failedByTime = rewriting((event) =>
  event.type === 'OutcomeUnknown' && event.data.code === 'lease_expired'
    ? { type: 'OperationFailed', data: { attempt: event.data.attempt, code: 'timeout', reason: 'No answer came.', evidence: 'budget' } }
    : event.type === 'ReviewRequested'
      ? null
      : event,
);

/** Late answers and what contradicts are thrown away instead of kept, and no person is asked. */
export const evidenceDropped = rewriting((event) => (event.type === 'ReviewRequested' || event.type === 'EvidenceRecorded' ? null : event));

/** What a person decides is kept without saying who it was. */
export const decisionWithoutActor = rewriting((event) =>
  event.type === 'ReviewDecided' ? { ...event, data: { ...event.data, actor: '', reason: '' } } : event,
);

/** A claim without an outcome is read as if it had never been made: whoever looks next makes it anew, be its holder alive or not. */
export const leaseIgnored: LogPart = (log, context) => {
  const free = (events: readonly RecordedEvent[]) => (events.at(-1)?.event.type === 'AttemptStarted' ? events.slice(0, -1) : events);
  return {
    ...noFence(log, context),
    readStream: async (stream) => free(await log.readStream(stream)),
    readStreams: async (streams) => new Map([...(await log.readStreams(streams))].map(([stream, events]) => [stream, free(events)])),
  };
};

/** Tells the writer that it is stored, and forgets one in three of the plans. */
export const acknowledgedBeforeStored: LogPart = (log, { random }) =>
  withAppend(log, (request) => {
    const isPlan = request.events[0]!.event.type === 'OperationPlanned';
    return isPlan && random.chance(1 / 3) ? nothingWritten(log, request) : log.append(request);
  });

/** The waiting time that a provider asked for is left out. */
export const retryAfterIgnored: LogPart = (log) => {
  const early = (events: readonly RecordedEvent[]) =>
    events.map((recorded): RecordedEvent => {
      const { event, metadata } = recorded;
      if (event.type !== 'AttemptNotSent' || typeof dueAfter(event, 0) !== 'number') return recorded;
      return { ...recorded, event: { ...event, data: { ...event.data, retry_at: metadata.at } } };
    });
  return {
    ...withAppend(log, (request) => log.append(request)),
    readStream: async (stream) => early(await log.readStream(stream)),
    readStreams: async (streams) => new Map([...(await log.readStreams(streams))].map(([stream, events]) => [stream, early(events)])),
  };
};

/** A submission is compared with itself and not with what is stored: another payload under the same identity passes for a repetition. */
export const duplicatePlanAccepted: LogPart = (log) => {
  let submitted: OperationEvent | null = null;
  return {
    ...withAppend(log, (request) => {
      const [first] = request.events;
      if (first!.event.type === 'OperationPlanned') submitted = first!.event;
      return log.append(request);
    }),
    readStream: async (stream) => {
      const events = await log.readStream(stream);
      const own = submitted;
      return events.map((recorded): RecordedEvent => {
        const { event } = recorded;
        const isSame =
          event.type === 'OperationPlanned' && own?.type === 'OperationPlanned' && event.data.operation_id === own.data.operation_id;
        return isSame ? { ...recorded, event: { ...event, data: { ...event.data, payload_hash: own.data.payload_hash } } } : recorded;
      });
    },
  };
};
