import type { Logger } from './logger.js';

/** One thing without which a process can't serve. */
export interface ReadinessCheck {
  readonly name: string;
  /** Rejects when it is not there. What it resolves with, a short word or number, is told as detail. */
  check(): Promise<string | number | void>;
}

export interface Readiness {
  readonly ready: boolean;
  readonly checks: readonly CheckOutcome[];
}

export interface CheckOutcome {
  readonly name: string;
  readonly ok: boolean;
  readonly detail?: string | number;
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
    const checks = await Promise.all(this.checks.map((check) => this.run(check)));
    return { ready: checks.every(({ ok }) => ok), checks };
  }

  private async run(readiness: ReadinessCheck): Promise<CheckOutcome> {
    const { name } = readiness;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new RangeError(`The check took more than ${this.timeoutMs} ms.`)), this.timeoutMs);
    });
    try {
      const detail = await Promise.race([readiness.check(), late]);
      if (this.failing.delete(name)) this.logger.info({ check: name }, 'check passes again');
      return { name, ok: true, ...(detail !== undefined && { detail }) };
    } catch (error) {
      // Told once, not with every probe.
      if (!this.failing.has(name)) this.logger.warn({ check: name, err: error }, 'check fails');
      this.failing.add(name);
      return { name, ok: false };
    } finally {
      clearTimeout(timer);
    }
  }
}
