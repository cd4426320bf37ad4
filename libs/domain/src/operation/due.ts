import type { OperationEvent } from './events.js';

/**
 * When an operation next needs somebody to look at it, told by its latest event alone: a time in epoch milliseconds, `null` for never
 * (until something arrives), `unchanged` where the event says nothing about it.
 * Dispatchers keep this as their due work. It only suggests; `nextStep` on the folded stream decides.
 */
export function dueAfter(event: OperationEvent, atMs: number): number | null | 'unchanged' {
  switch (event.type) {
    case 'OperationPlanned':
    case 'CheckRequested':
      return atMs;
    case 'AttemptStarted':
      return Date.parse(event.data.lease_until);
    case 'AttemptNotSent':
      return Date.parse(event.data.retry_at);
    case 'OutcomeUnknown':
    case 'OutcomeChecked':
      return event.data.next_check_at === null ? null : Date.parse(event.data.next_check_at);
    case 'ReviewDecided':
      return event.data.decision === 'retry_once' ? atMs : null;
    case 'OperationCancelled':
    case 'OperationSucceeded':
    case 'OperationFailed':
    case 'ReviewRequested':
      return null;
    case 'EvidenceRecorded':
    default:
      return 'unchanged';
  }
}
