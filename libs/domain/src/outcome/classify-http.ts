import type { ProviderAnswer } from '../ports/provider.js';

/** What a provider declares about its status codes. A code stands in one list at most. */
export interface HttpOutcomes {
  readonly final: readonly number[];
  readonly notConsumed: readonly number[];
  readonly inProgress: readonly number[];
  readonly alreadyDone: readonly number[];
}

export interface HttpAnswer {
  readonly status: number;
  readonly retryAfterMs: number | null;
  /** What the action takes from a 2xx body; null where the body could not be read or lacks the provider's operation id. */
  readonly success: { readonly providerOperationId: string | null; readonly result: unknown; readonly responseDigest: string } | null;
}

/**
 * Could the request have taken effect? Only what is declared is believed; the rest is unknown (design: "Classifying an answer").
 */
export function classifyHttpAnswer(declared: HttpOutcomes, { status, retryAfterMs, success }: HttpAnswer): ProviderAnswer {
  if (status >= 200 && status <= 299) {
    return success ? { kind: 'succeeded', ...success } : { kind: 'unknown', code: 'unreadable_response', status };
  }
  if (declared.inProgress.includes(status)) return { kind: 'not_sent', code: 'key_in_progress', reached: true, retryAfterMs };
  if (declared.alreadyDone.includes(status)) return { kind: 'already_done' };
  if (declared.notConsumed.includes(status)) return { kind: 'not_sent', code: `http_${status}`, reached: true, retryAfterMs };
  if (declared.final.includes(status))
    return { kind: 'failed', code: `http_${status}`, reason: `The provider refused with status ${status}.` };
  if (status >= 500) return { kind: 'unknown', code: 'server_error', status };
  if (status >= 300 && status <= 399) return { kind: 'unknown', code: 'redirect', status };
  return { kind: 'unknown', code: 'unexpected_status', status };
}
