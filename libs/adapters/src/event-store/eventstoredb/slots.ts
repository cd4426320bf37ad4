import { LogOverloaded } from '#domain';

export interface SlotBounds {
  /** Tasks at work at once. */
  readonly running: number;
  /** Tasks that may wait for one of those to finish. */
  readonly waiting: number;
  /** What the waiting ones may weigh together, in bytes. */
  readonly waitingBytes?: number;
}

/** Lets a bounded number of tasks run, a bounded number wait their turn, and refuses the rest. */
export class Slots {
  private running = 0;
  private waitingBytes = 0;
  private readonly queue: (() => void)[] = [];
  private whenIdle: (() => void)[] = [];

  constructor(
    private readonly what: string,
    private readonly bounds: SlotBounds,
  ) {}

  /** @throws LogOverloaded where too many wait already; whatever the task throws */
  async run<T>(task: () => Promise<T>, bytes = 0): Promise<T> {
    if (this.running >= this.bounds.running) await this.wait(bytes);
    else this.running++;
    try {
      return await task();
    } finally {
      this.leave();
    }
  }

  /** Resolves when nothing runs and nothing waits. */
  async idle(): Promise<void> {
    if (this.running > 0) await new Promise<void>((resolve) => this.whenIdle.push(resolve));
  }

  private async wait(bytes: number): Promise<void> {
    const { waiting, waitingBytes = Infinity } = this.bounds;
    if (this.queue.length >= waiting) throw new LogOverloaded(`${waiting} ${this.what} are already waiting.`);
    if (this.waitingBytes >= waitingBytes) throw new LogOverloaded(`${this.what} of ${waitingBytes} bytes are already waiting.`);
    this.waitingBytes += bytes;
    await new Promise<void>((resolve) => this.queue.push(resolve));
    this.waitingBytes -= bytes;
  }

  /** The place goes straight to the next one, so that nobody who comes later gets in between. */
  private leave(): void {
    const next = this.queue.shift();
    if (next) return next();
    this.running--;
    if (this.running > 0) return;
    for (const resolve of this.whenIdle.splice(0)) resolve();
  }
}
