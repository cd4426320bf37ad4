import type { ProviderDefinition } from '#domain';

/** What came of the use of a slot, as far as the provider's health is concerned. */
export type Health =
  /** An attempt was answered, also with a no. */
  | 'answered'
  /** A look-up was answered: the provider can be asked, which does not mean that it can be used. */
  | 'looked_up'
  /** It could not be reached, or left us in doubt. */
  | 'unhealthy'
  /** A request may have been made and tells nothing. */
  | 'unclear'
  /** No request was made. */
  | 'unused';

/** `probe`: the one look-up with which a half-open breaker tries the provider. */
export type Purpose = 'attempt' | 'lookup' | 'probe';

/** A half-open breaker tries one request at a time. */
const HALF_OPEN_ROOM = 1;

/**
 * How much of a provider may be used now: its concurrency, its rate, and a breaker that stops new attempts while the provider is
 * evidently down. The gate only ever delays; it moves no operation to another state.
 */
export class ProviderGate {
  private inUse = 0;
  private tokens: number;
  private refilledAtMs: number;
  private failures: number[] = [];
  private openUntilMs: number | null = null;
  /** Due work is waiting for this provider: fresh operations queue behind it. */
  backlog = false;

  /**
   * @param canLookUp whether the provider has a look-up to try it with
   * @param nowMs monotonic milliseconds
   */
  constructor(
    readonly provider: ProviderDefinition,
    private readonly canLookUp: boolean,
    private readonly nowMs: () => number,
  ) {
    this.tokens = provider.limits.perSecond ?? 0;
    this.refilledAtMs = nowMs();
  }

  /** Slots free now, for attempts and look-ups together. */
  room(): number {
    const free = this.provider.limits.concurrency - this.inUse;
    if (this.breakerState() === 'half_open') return Math.min(free, HALF_OPEN_ROOM - Math.min(HALF_OPEN_ROOM, this.inUse));
    this.refill();
    return Math.max(0, this.provider.limits.perSecond === null ? free : Math.min(free, Math.floor(this.tokens)));
  }

  breakerState(): 'closed' | 'open' | 'half_open' {
    if (this.openUntilMs === null) return 'closed';
    return this.nowMs() < this.openUntilMs ? 'open' : 'half_open';
  }

  /** Half-open, and the catalogue wants a look-up to be tried before the next attempt. */
  needsProbe(): boolean {
    return this.breakerState() === 'half_open' && this.canLookUp && this.provider.breaker?.halfOpen === 'lookup';
  }

  /** When a refused use is worth trying again, in milliseconds from now. */
  retryInMs(purpose: Purpose): number {
    const { perSecond } = this.provider.limits;
    if (purpose === 'attempt' && this.breakerState() === 'open') return this.openUntilMs! - this.nowMs();
    this.refill();
    return perSecond === null || this.tokens >= 1 ? 0 : Math.ceil(((1 - this.tokens) * 1000) / perSecond);
  }

  /** Takes a slot; look-ups pass an open breaker, since they cause nothing. */
  tryUse(purpose: Purpose): boolean {
    if (this.inUse >= this.provider.limits.concurrency || !this.breakerAllows(purpose)) return false;
    if (this.provider.limits.perSecond !== null) {
      this.refill();
      if (this.tokens < 1) return false;
      this.tokens--;
    }
    this.inUse++;
    return true;
  }

  /** Gives a slot back. */
  done(health: Health): void {
    this.inUse--;
    switch (health) {
      case 'answered':
        return this.close();
      case 'looked_up':
        // Otherwise the look-ups that follow each doubt would keep a breaker from ever opening.
        if (this.needsProbe()) this.close();
        return;
      case 'unhealthy':
        return this.countFailure();
      case 'unused':
        // The rate counts requests; the bound is applied at the next refill.
        this.tokens++;
        return;
      case 'unclear':
        return;
    }
  }

  get used(): number {
    return this.inUse;
  }

  private breakerAllows(purpose: Purpose): boolean {
    const breaker = this.breakerState();
    const mayTry = breaker === 'half_open' && this.inUse < HALF_OPEN_ROOM;
    switch (purpose) {
      case 'lookup':
        return true;
      case 'probe':
        return mayTry && this.needsProbe();
      case 'attempt':
        return breaker === 'closed' || (mayTry && !this.needsProbe());
    }
  }

  private close(): void {
    this.failures = [];
    this.openUntilMs = null;
  }

  private countFailure(): void {
    const { breaker } = this.provider;
    if (breaker === null) return;
    const now = this.nowMs();
    if (this.openUntilMs !== null) {
      // Half-open and failed again, or a request from before it opened: either way not yet back.
      this.openUntilMs = Math.max(this.openUntilMs, now + breaker.windowMs);
      return;
    }
    // Never more than `failures` entries: at that number the breaker opens and the list is dropped.
    this.failures = [...this.failures.filter((at) => now - at < breaker.windowMs), now];
    if (this.failures.length >= breaker.failures) {
      this.failures = [];
      this.openUntilMs = now + breaker.windowMs;
    }
  }

  private refill(): void {
    const { perSecond } = this.provider.limits;
    if (perSecond === null) return;
    const now = this.nowMs();
    // At most one second's worth is saved up, so that a pause is not followed by a burst above the declared rate.
    this.tokens = Math.min(Math.max(1, perSecond), this.tokens + ((now - this.refilledAtMs) * perSecond) / 1000);
    this.refilledAtMs = now;
  }
}
