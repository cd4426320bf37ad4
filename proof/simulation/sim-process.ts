import type { Random } from './random.js';
import type { VirtualTime } from './virtual-time.js';

/** When, counted in calls of its ports, something befalls a process: before a request leaves, or after it took effect. */
export interface Ambush {
  calls: number;
  readonly moment: 'before' | 'after';
  readonly act: () => void;
}

const QUICK_MS = 3;
const SLOW_SHARE = 0.04;
const SLOW_MS = 900;

/**
 * One process. All that it awaits goes through here: a request travels, takes effect elsewhere, and its answer travels back. A process
 * that was killed never gets an answer, so that nothing of it ever goes on; one that stands still gets them all when it is woken.
 */
export class SimProcess {
  alive = true;
  frozen = false;
  private readonly startedAtMs: number;
  private readonly held: (() => void)[] = [];
  private readonly ambushes: Ambush[] = [];

  constructor(
    readonly name: string,
    private readonly time: VirtualTime,
    private readonly random: Random,
  ) {
    this.startedAtMs = time.nowMs;
  }

  /** Goes on while the process stands still, as CLOCK_MONOTONIC does. */
  monotonicMs = (): number => this.time.nowMs - this.startedAtMs;

  kill(): void {
    this.alive = false;
    this.held.length = 0;
  }

  freeze(): void {
    this.frozen = true;
  }

  thaw(): void {
    this.frozen = false;
    for (const act of this.held.splice(0)) this.deliver(act);
  }

  /** Something happens at the n-th call from now. */
  ambush(ambush: Ambush): void {
    this.ambushes.push(ambush);
  }

  /** A request to another process, and its answer. */
  port<T>(effect: () => T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (!this.alive) return;
      this.spring('before');
      this.deliver(() => {
        this.time.after(this.travelMs(), () => {
          const back = (settle: () => void) => {
            this.spring('after');
            this.time.after(this.travelMs(), () => this.deliver(settle));
          };
          void Promise.resolve()
            .then(effect)
            .then(
              (value) => back(() => resolve(value)),
              (error: unknown) => back(() => reject(error as Error)),
            );
        });
      });
    });
  }

  delay = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      this.time.after(ms, () => this.deliver(resolve));
    });

  /** Something arrives from outside. */
  deliver(act: () => void): void {
    if (!this.alive) return;
    if (this.frozen) this.held.push(act);
    else act();
  }

  travelMs(): number {
    return this.random.chance(SLOW_SHARE) ? this.random.between(QUICK_MS, SLOW_MS) : this.random.between(0, QUICK_MS);
  }

  private spring(moment: Ambush['moment']): void {
    for (const ambush of [...this.ambushes]) {
      if (ambush.moment !== moment || --ambush.calls > 0) continue;
      this.ambushes.splice(this.ambushes.indexOf(ambush), 1);
      ambush.act();
    }
  }
}
