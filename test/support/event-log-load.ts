import type { EventLog, RecordedEvent } from '#domain';
import { LogUnavailable } from '#domain';
import { appendBehind, firstAppend, freshStream, newEvents } from './event-log-samples.js';

export interface AppendChain {
  readonly stream: string;
  /** Ids of all events whose append was acknowledged, in order. */
  readonly ids: readonly string[];
}

/** Longer than any restart in the tests. */
const ATTEMPTS_MAX = 10;

/** Appends events one after another to one stream, as a worker does: an append of unknown result is repeated as it was. */
export async function chainOfAppends(log: EventLog, count: number, onAcknowledged: () => void = () => undefined): Promise<AppendChain> {
  const stream = freshStream();
  const ids: string[] = [];
  let last: RecordedEvent | undefined;
  while (ids.length < count) {
    const events = newEvents(`${ids.length}`);
    const request = last ? appendBehind(last, events) : firstAppend(stream, events);
    last = await appended(log, request);
    if (last.id !== events[0]!.id) throw new Error(`Stream ${stream} ends with an event of somebody else.`);
    ids.push(last.id);
    onAcknowledged();
  }
  return { stream, ids };
}

async function appended(log: EventLog, request: Parameters<EventLog['append']>[0]): Promise<RecordedEvent> {
  for (let attempt = 1; ; attempt++) {
    try {
      const result = await log.append(request);
      if (result.outcome === 'written') return result.events.at(-1)!;
      if (result.outcome === 'conflict') throw new Error(`Conflict at ${result.actualRevision} on a stream with one writer.`);
      return (await log.readStream(request.stream)).at(-1)!;
    } catch (error) {
      if (!(error instanceof LogUnavailable) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
