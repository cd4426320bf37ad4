import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffDelayMs, RETRY_AFTER_MAX_MS, retryDelayMs } from '#domain';
import { seeded } from '../support/seeded.js';

const backoff = { initial_ms: 1000, factor: 2, max_ms: 60_000 };
const anyBackoff = fc.record({
  initial_ms: fc.integer({ min: 1, max: 600_000 }),
  factor: fc.double({ min: 1, max: 10, noNaN: true }),
  max_ms: fc.integer({ min: 1, max: 86_400_000 }),
});
const anyJitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('retry policy', () => {
  it.each([
    [1, 1000],
    [2, 2000],
    [3, 4000],
    [6, 32_000],
    [7, 60_000],
    [1000, 60_000],
  ])('after %i tries the delay lies between 0 and %i ms', (tries, ceilingMs) => {
    expect(backoffDelayMs(backoff, tries, 0)).toBe(0);
    expect(backoffDelayMs(backoff, tries, 0.5)).toBe(ceilingMs / 2);
    expect(backoffDelayMs(backoff, tries, 1 - 1e-9)).toBe(ceilingMs - 1);
  });

  it('uses the whole range and nothing beyond it (full jitter)', () => {
    seeded(
      fc.property(anyBackoff, fc.integer({ min: 1, max: 2000 }), anyJitter, (any, tries, jitter) => {
        const delayMs = backoffDelayMs(any, tries, jitter);
        expect(Number.isSafeInteger(delayMs)).toBe(true);
        expect(delayMs).toBeGreaterThanOrEqual(0);
        expect(delayMs).toBeLessThanOrEqual(any.max_ms);
      }),
    );
  });

  it('never retries before the provider’s Retry-After, and believes it up to a day', () => {
    seeded(
      fc.property(
        anyBackoff,
        fc.integer({ min: 1, max: 50 }),
        anyJitter,
        fc.integer({ min: 0, max: 1e12 }),
        (any, tries, jitter, afterMs) => {
          const delayMs = retryDelayMs(any, tries, jitter, afterMs);
          expect(delayMs).toBeGreaterThanOrEqual(Math.min(afterMs, RETRY_AFTER_MAX_MS));
          expect(delayMs).toBeLessThanOrEqual(Math.max(any.max_ms, RETRY_AFTER_MAX_MS));
        },
      ),
    );
    expect(retryDelayMs(backoff, 1, 0, 5000)).toBe(5000);
    expect(retryDelayMs(backoff, 7, 0.5, 5000)).toBe(30_000);
    expect(retryDelayMs(backoff, 1, 0.25, null)).toBe(250);
  });
});
