import { UnreadableEvent, type EventLog, type RecordedEvent } from '#domain';

/** A stretch of the log: events, or one that can't be read. */
export type LogPage =
  { readonly kind: 'events'; readonly events: readonly RecordedEvent[] } | { readonly kind: 'unreadable'; readonly error: UnreadableEvent };

/** Bounds a page in memory and in what is sent again after a failure; some hundreds for each partition. */
export const PAGE_EVENTS_MAX = 2_000;

/**
 * Reads the next page. An event that can't be read ends the page before it, and stands alone in the next.
 * @throws what reading throws for any other reason, `LogUnavailable` above all
 */
export async function readPage(log: Pick<EventLog, 'readAll'>, after: bigint): Promise<LogPage> {
  try {
    return { kind: 'events', events: await log.readAll(after, PAGE_EVENTS_MAX) };
  } catch (error) {
    if (error instanceof UnreadableEvent) return { kind: 'unreadable', error };
    throw error;
  }
}
