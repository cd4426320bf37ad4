import type { DatabaseClock } from '#domain';
import type { Pool } from './database.js';

/** The database's clock may be stepped by its operator; leases are decided by what it says now, so it is asked again this often. */
const CALIBRATE_EVERY_MS = 5_000;

/**
 * The database's time, carried forward between two answers by the process's monotonic counter. The machine's wall clock is never read:
 * a process whose clock is wrong or jumps decides as every other.
 */
export class PostgresClock implements DatabaseClock {
  private offsetMs = 0;
  private timer: NodeJS.Timeout | undefined;

  private constructor(private readonly pool: Pool) {}

  /** @param onError told when the database could not be asked again; the clock then runs on from its last answer */
  static async start(pool: Pool, onError: (error: Error) => void): Promise<PostgresClock> {
    const clock = new PostgresClock(pool);
    await clock.calibrate();
    clock.timer = setInterval(() => void clock.calibrate().catch(onError), CALIBRATE_EVERY_MS);
    clock.timer.unref();
    return clock;
  }

  nowMs(): number {
    return Math.floor(performance.now() + this.offsetMs);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  async calibrate(): Promise<void> {
    const askedAt = performance.now();
    const { rows } = await this.pool.query<{ now: string }>({ name: 'now', text: 'select onefold.now_ms() as now' });
    // The answer was made somewhere between asking and hearing it; the middle is wrong by half of that at most.
    this.offsetMs = Number(rows[0]!.now) - (askedAt + performance.now()) / 2;
  }
}
