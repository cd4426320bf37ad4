import type { DatabaseClock } from '#domain';
import type { Pool } from './database.js';

/** The database's clock may be stepped by its operator; leases are decided by what it says now, so it is asked again this often. */
const CALIBRATE_EVERY_MS = 5_000;
/** An answer that took longer says less about the time than the last one does. */
const ROUND_TRIP_MAX_MS = 500;

/**
 * The database's time, carried forward between two answers by the process's monotonic counter. The machine's wall clock is never read:
 * a process whose clock is wrong or jumps decides as every other.
 */
export class PostgresClock implements DatabaseClock {
  private offsetMs = 0;
  private isSet = false;
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
    // Waiting for a connection is no part of the question.
    const client = await this.pool.connect();
    try {
      const askedAt = performance.now();
      const { rows } = await client.query<{ now: string }>({ name: 'now', text: 'select onefold.now_ms() as now' });
      const heardAt = performance.now();
      if (this.isSet && heardAt - askedAt > ROUND_TRIP_MAX_MS) return;
      // The answer was made somewhere between asking and hearing it; the middle is wrong by half of that at most.
      this.offsetMs = Number(rows[0]!.now) - (askedAt + heardAt) / 2;
      this.isSet = true;
    } finally {
      client.release();
    }
  }
}
