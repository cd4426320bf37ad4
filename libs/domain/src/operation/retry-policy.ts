import type { Backoff } from './events.js';

/** A provider's own `Retry-After` is believed up to a day; a longer one would park an operation on a typing error. */
export const RETRY_AFTER_MAX_MS = 86_400_000;

/**
 * Delay before try `n + 1`, with full jitter: uniform between 0 and the exponential ceiling
 * (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).
 * @param n tries made so far, from 1
 * @param jitter in [0, 1), handed in
 */
export function backoffDelayMs(backoff: Backoff, n: number, jitter: number): number {
  // The exponent is bounded so that a long history gives the ceiling and not infinity times zero.
  const ceilingMs = Math.min(backoff.max_ms, backoff.initial_ms * backoff.factor ** Math.min(n - 1, 64));
  return Math.floor(ceilingMs * jitter);
}

/** As `backoffDelayMs`, but never before the provider's own `Retry-After`. */
export function retryDelayMs(backoff: Backoff, n: number, jitter: number, retryAfterMs: number | null): number {
  return Math.max(backoffDelayMs(backoff, n, jitter), Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}
