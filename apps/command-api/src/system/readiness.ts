import type { Logger } from '#adapters/observability/logger.js';
import type { ReadinessCheck } from '../dependencies.js';

export interface Readiness {
  readonly ready: boolean;
  readonly checks: readonly { readonly name: string; readonly ok: boolean }[];
}

/** A probe's own time-out is commonly a few seconds; the answer has to come before. */
const CHECK_TIMEOUT_MS = 2_000;
/** Anyone may ask: however often they do, the parts behind are asked once in this time. */
const KEPT_MS = 1_000;

/** Runs the checks together, and answers everybody who asks meanwhile with the same outcome. */
export class ReadinessChecks {
  private latest: { readonly askedAtMs: number; readonly outcome: Promise<Readiness> } | null = null;
  private readonly failing = new Set<string>();

  /** @param nowMs a monotonic clock */
  constructor(
    private readonly checks: readonly ReadinessCheck[],
    private readonly logger: Logger,
    private readonly nowMs: () => number,
    private readonly timeoutMs = CHECK_TIMEOUT_MS,
  ) {}

  read(): Promise<Readiness> {
    const askedAtMs = this.nowMs();
    if (!this.latest || askedAtMs - this.latest.askedAtMs >= KEPT_MS) this.latest = { askedAtMs, outcome: this.runAll() };
    return this.latest.outcome;
  }

  private async runAll(): Promise<Readiness> {
    const checks = await Promise.all(this.checks.map(async (check) => ({ name: check.name, ok: await this.run(check) })));
    return { ready: checks.every(({ ok }) => ok), checks };
  }

  private async run({ name, check }: ReadinessCheck): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new RangeError(`The check took more than ${this.timeoutMs} ms.`)), this.timeoutMs);
    });
    try {
      await Promise.race([check(), late]);
      if (this.failing.delete(name)) this.logger.info({ check: name }, 'check passes again');
      return true;
    } catch (error) {
      // Told once, not with every probe.
      if (!this.failing.has(name)) this.logger.warn({ check: name, err: error }, 'check fails');
      this.failing.add(name);
      return false;
    } finally {
      clearTimeout(timer);
    }
  }
}
