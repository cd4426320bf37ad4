import { randomUUID } from 'node:crypto';
import type { AppendRequest, AppendResult, EventLog, EventMetadata, NewEvent, OperationEvent, RecordedEvent } from '#domain';

export const freshStream = (): string => `operation-op_${randomUUID().replaceAll('-', '')}`;

/** An event that carries any text, in one of the permanent shapes. */
export const failure = (reason: string): OperationEvent => ({
  type: 'OperationFailed',
  data: { attempt: 1, code: 'http_402', reason, evidence: 'response' },
});

export const sampleMetadata = (): EventMetadata => ({
  tenant: 't1',
  at: '2026-01-05T10:00:01.000Z',
  actor: 'agent-1',
  correlation: randomUUID(),
  causation: null,
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
});

/** One command's events: own ids, one metadata object among them. */
export function newEvents(...reasons: readonly string[]): NewEvent[] {
  const metadata = sampleMetadata();
  return reasons.map((reason) => ({ id: randomUUID(), event: failure(reason), metadata }));
}

export const numbered = (count: number, prefix = 'event'): string[] => Array.from({ length: count }, (_, index) => `${prefix} ${index}`);

export function firstAppend(stream: string, events: readonly NewEvent[]): AppendRequest {
  return { stream, expectedRevision: 'no_stream', previousChain: null, events };
}

export function appendBehind(last: RecordedEvent, events: readonly NewEvent[]): AppendRequest {
  return { stream: last.stream, expectedRevision: last.revision, previousChain: last.chain, events };
}

/** @throws where the append was not written, with what came instead */
export function writtenEvents(result: AppendResult): readonly RecordedEvent[] {
  if (result.outcome !== 'written') throw new Error(`Expected a written append, got ${JSON.stringify(result)}.`);
  return result.events;
}

/** A fresh stream with one event for each reason. */
export async function seedStream(log: EventLog, ...reasons: readonly string[]): Promise<readonly RecordedEvent[]> {
  return writtenEvents(await log.append(firstAppend(freshStream(), newEvents(...reasons))));
}

/** Reads from `after` to the end as a consumer does: page by page, until a page is empty. */
export async function readToEnd(log: EventLog, after: bigint, pageSize: number): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (;;) {
    const position = events.at(-1)?.position ?? after;
    const page = await log.readAll(position, pageSize);
    if (page.length === 0) return events;
    if (page[0]!.position <= position) throw new Error(`The log went back behind position ${position}.`);
    events.push(...page);
  }
}

export const reasonOf = ({ event }: { readonly event: OperationEvent }): string =>
  event.type === 'OperationFailed' ? event.data.reason : '';
