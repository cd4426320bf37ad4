import { timestamp } from './next-step.js';
import type { KnownOperation } from './state.js';

/** What a caller may do and say now, spelled out so that an agent cannot misread it. */
export interface Guidance {
  readonly state: 'in_progress' | 'unconfirmed' | 'checking' | 'done' | 'failed';
  /** What asking again with the same identity gives; never a second effect. */
  readonly same_identity: 'attaches' | 'stored_result' | 'stored_failure';
  /** Whether a new operation for the same business is in order: false, or only under a new revision. */
  readonly new_operation: false | 'new_revision';
  readonly retry_after_seconds: number | null;
  readonly safe_retry_until: string | null;
  readonly say: string;
}

const IN_PROGRESS_POLL_SECONDS = 1;
/** A person is slower than a machine: asking every half minute is soon enough. */
const REVIEW_POLL_SECONDS = 30;

export function guidanceFor(state: KnownOperation, nowMs: number): Guidance {
  const safe_retry_until = state.history.safeRetryUntilMs === null ? null : timestamp(state.history.safeRetryUntilMs);
  const open = { same_identity: 'attaches', new_operation: false, safe_retry_until } as const;
  switch (state.status) {
    case 'planned':
    case 'executing':
      return {
        state: 'in_progress',
        ...open,
        retry_after_seconds: IN_PROGRESS_POLL_SECONDS,
        say: 'In progress. Do not say it succeeded or failed.',
      };
    case 'failed_retryable':
      return {
        state: 'in_progress',
        ...open,
        retry_after_seconds: secondsUntil(state.retryAtMs, nowMs),
        say: 'In progress. Do not say it succeeded or failed.',
      };
    case 'unknown':
      if (state.review) {
        return {
          state: 'checking',
          ...open,
          retry_after_seconds: REVIEW_POLL_SECONDS,
          say: 'Outcome unknown. A person is checking. Do not say it succeeded or failed.',
        };
      }
      return {
        state: 'unconfirmed',
        ...open,
        retry_after_seconds: secondsUntil(state.nextCheckAtMs ?? nowMs, nowMs),
        say: 'Outcome not confirmed yet. Do not say it succeeded or failed.',
      };
    case 'succeeded':
      if (state.review) return contradicted('stored_result', 'Recorded as done');
      return {
        state: 'done',
        same_identity: 'stored_result',
        new_operation: 'new_revision',
        retry_after_seconds: null,
        safe_retry_until: null,
        say: 'Done. It happened once; asking again returns the stored result.',
      };
    case 'failed_final':
      if (state.review) return contradicted('stored_failure', 'Recorded as failed');
      if (state.code === 'given_up' || state.history.provenEffect) {
        // Closed without an answer, or an effect was seen after all: to call it failed would invite the second effect.
        return {
          state: 'failed',
          same_identity: 'stored_failure',
          new_operation: false,
          retry_after_seconds: null,
          safe_retry_until: null,
          say: state.history.provenEffect
            ? 'Recorded as failed, but an effect was seen later. Do not say it succeeded or failed, and do not order it again.'
            : 'Closed by a person without a confirmed outcome. Do not say it succeeded or failed, and do not order it again.',
        };
      }
      return {
        state: 'failed',
        same_identity: 'stored_failure',
        new_operation: 'new_revision',
        retry_after_seconds: null,
        safe_retry_until: null,
        say: 'Failed; it did not happen and will not be tried again. To order it again, submit a new revision.',
      };
  }
}

/** The recorded outcome stands, but evidence against it waits for a person: until then it is no ground for a new order. */
function contradicted(same_identity: 'stored_result' | 'stored_failure', recorded: string): Guidance {
  return {
    state: 'checking',
    same_identity,
    new_operation: false,
    retry_after_seconds: REVIEW_POLL_SECONDS,
    safe_retry_until: null,
    say: `${recorded}, but other evidence contradicts it. A person is checking. Do not say it succeeded or failed, and do not order it again.`,
  };
}

function secondsUntil(atMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((atMs - nowMs) / 1000));
}
