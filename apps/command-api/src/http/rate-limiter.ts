/** What a request was told about its tenant's budget. */
export interface RateVerdict {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until enough tokens are back. */
  readonly retryAfterSeconds: number;
}

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/**
 * A token bucket for each tenant, one second's worth deep. Only tenants of configured keys ever get one, so the map is as bounded as the
 * configuration.
 */
export class RateLimiter {
  private readonly buckets = new Map<string, Bucket>();

  /** @param nowMs a monotonic clock: a jump of the wall clock must neither lock out nor let in */
  constructor(
    readonly perSecond: number,
    private readonly nowMs: () => number,
  ) {}

  /** @param cost tokens to take: 1 a request, 1 an operation of a batch; one that costs more than the bucket holds waits for a full one */
  take(tenant: string, cost: number): RateVerdict {
    const bucket = this.refill(tenant);
    const needed = Math.min(cost, this.perSecond);
    if (bucket.tokens < needed) {
      const retryAfterSeconds = Math.max(1, Math.ceil((needed - bucket.tokens) / this.perSecond));
      return { allowed: false, remaining: Math.max(0, Math.floor(bucket.tokens)), retryAfterSeconds };
    }
    // Below zero after a large batch: what it took beyond the bucket is paid back before the next one.
    bucket.tokens -= cost;
    return { allowed: true, remaining: Math.max(0, Math.floor(bucket.tokens)), retryAfterSeconds: 0 };
  }

  private refill(tenant: string): Bucket {
    const nowMs = this.nowMs();
    const bucket = this.buckets.get(tenant);
    if (!bucket) {
      const fresh = { tokens: this.perSecond, filledAtMs: nowMs };
      this.buckets.set(tenant, fresh);
      return fresh;
    }
    bucket.tokens = Math.min(this.perSecond, bucket.tokens + ((nowMs - bucket.filledAtMs) / 1000) * this.perSecond);
    bucket.filledAtMs = nowMs;
    return bucket;
  }
}
