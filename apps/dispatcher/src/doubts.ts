/** More operations than are looked up at once; one that is forgotten is only proven absent later. */
const DOUBTS_MAX = 10_000;

/** Since when this process has known which operations to be in doubt, by its monotonic counter. Nothing of it survives a restart. */
export class Doubts {
  private readonly since = new Map<string, { readonly attempt: number; readonly knownAtMs: number }>();

  constructor(private readonly monotonicMs: () => number) {}

  /** How long the doubt about this attempt has been known here; 0 when it is heard of for the first time. */
  ageMs(operationId: string, attempt: number): number {
    const now = this.monotonicMs();
    const known = this.since.get(operationId);
    if (known?.attempt === attempt) return now - known.knownAtMs;
    this.since.delete(operationId);
    this.since.set(operationId, { attempt, knownAtMs: now });
    // A map keeps the order of insertion: the first one is the oldest.
    if (this.since.size > DOUBTS_MAX) this.since.delete(this.since.keys().next().value!);
    return 0;
  }

  forget(operationId: string): void {
    this.since.delete(operationId);
  }
}
