interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly act: () => void;
}

/** Far more than any run makes: a loop that never sleeps is a fault, and this ends it. */
const EVENTS_MAX = 2_000_000;

/**
 * The only clock of a simulation. It stands still while anything runs and jumps to the next planned moment when nothing does, so that
 * hours pass in milliseconds and every run of a seed is the same.
 */
export class VirtualTime {
  nowMs: number;
  /** Acts done so far. */
  events = 0;
  /** A heap by time, then by the order of planning. */
  private readonly heap: Planned[] = [];
  private order = 0;

  constructor(startMs: number) {
    this.nowMs = startMs;
  }

  after(ms: number, act: () => void): void {
    const planned = { atMs: this.nowMs + Math.max(0, ms), order: this.order++, act };
    const { heap } = this;
    let index = heap.push(planned) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(planned, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = planned;
  }

  at(atMs: number, act: () => void): void {
    this.after(atMs - this.nowMs, act);
  }

  /** Acts one after another until the moment is reached or `done` says so; what each act has set off runs to its end first. */
  async run(untilMs: number, done: () => boolean = () => false): Promise<void> {
    while (this.heap.length > 0 && this.heap[0]!.atMs <= untilMs && !done()) {
      if (++this.events > EVENTS_MAX) throw new Error(`More than ${EVENTS_MAX} simulated events: something never sleeps.`);
      const { atMs, act } = this.take();
      this.nowMs = atMs;
      act();
      await drained();
    }
    if (!done()) this.nowMs = Math.max(this.nowMs, untilMs);
  }

  private take(): Planned {
    const { heap } = this;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(one: Planned, other: Planned): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/** Once no promise of this turn has anything left to do: no part of a simulation waits for anything real. */
function drained(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
