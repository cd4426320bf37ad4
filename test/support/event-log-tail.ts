import type { EventLog, RecordedEvent } from '#domain';

/** Reads a log from the beginning as a consumer does that remembers nothing but the last position it has seen. */
export class Tail {
  readonly seen: RecordedEvent[] = [];
  private stopped = false;
  private readonly loop: Promise<void>;

  constructor(
    private readonly log: EventLog,
    private readonly pageSize = 50,
  ) {
    this.loop = this.run();
  }

  get position(): bigint {
    return this.seen.at(-1)?.position ?? 0n;
  }

  /** Ends at a read that was begun after this call and found nothing more. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.loop;
  }

  private async run(): Promise<void> {
    for (;;) {
      const isLast = this.stopped;
      const page = await this.log.readAll(this.position, this.pageSize);
      // Without this a log that goes backwards would keep the test here for ever instead of failing it.
      if (page.length > 0 && page[0]!.position <= this.position) throw new Error(`The log went back behind position ${this.position}.`);
      this.seen.push(...page);
      if (isLast && page.length === 0) return;
      if (page.length === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** What a tail did wrong, in words; empty when it saw each committed event once, in order, at positions without holes. */
export function tailFaults(seen: readonly RecordedEvent[], committedIds: readonly string[]): string[] {
  const ids = new Set(seen.map(({ id }) => id));
  const committed = new Set(committedIds);
  const faults: string[] = [];
  const skipped = committedIds.filter((id) => !ids.has(id)).length;
  const foreign = [...ids].filter((id) => !committed.has(id)).length;
  if (skipped > 0) faults.push(`${skipped} committed events skipped`);
  if (foreign > 0) faults.push(`${foreign} events seen that were not committed`);
  if (ids.size < seen.length) faults.push(`${seen.length - ids.size} events seen twice`);
  if (seen.some(({ position }, index) => position !== BigInt(index + 1))) faults.push('positions are not 1, 2, 3 ...');
  const last = new Map<string, number>();
  for (const { stream, revision } of seen) {
    if (revision !== (last.get(stream) ?? -1) + 1) faults.push(`${stream} out of order at revision ${revision}`);
    last.set(stream, revision);
  }
  return faults;
}
