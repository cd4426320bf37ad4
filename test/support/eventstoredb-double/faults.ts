/**
 * What may go wrong with one call.
 * `silence_before_commit`, `silence_after_commit`: nothing is answered while the connection stands.
 * `cut_before_commit`, `cut_after_commit`: every connection breaks before the answer.
 * `not_leader`: refused with the leader's address. `unavailable`: refused.
 */
export type Fault =
  'silence_before_commit' | 'silence_after_commit' | 'cut_before_commit' | 'cut_after_commit' | 'not_leader' | 'unavailable';

export type Call = 'append' | 'read_stream' | 'read_all' | 'subscribe' | 'gossip';

interface Planned {
  readonly fault: Fault;
  left: number;
  readonly struck: () => void;
}

/** Which of the next calls go wrong, and how. */
export class Faults {
  private readonly planned = new Map<Call, Planned[]>();

  /** The next `times` calls of this kind fail so, behind those planned before; resolves when the last of them has. */
  next(call: Call, fault: Fault, times = 1): Promise<void> {
    return new Promise((struck) => {
      this.planned.set(call, [...(this.planned.get(call) ?? []), { fault, left: times, struck }]);
    });
  }

  clear(): void {
    this.planned.clear();
  }

  /** Takes the fault for a call that has just come in. */
  take(call: Call): Fault | null {
    const [first, ...rest] = this.planned.get(call) ?? [];
    if (!first) return null;
    if (--first.left <= 0) {
      this.planned.set(call, rest);
      first.struck();
    }
    return first.fault;
  }
}
