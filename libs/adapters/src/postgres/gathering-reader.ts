interface Waiting<V> {
  readonly key: string;
  readonly resolve: (value: V) => void;
  readonly reject: (error: unknown) => void;
}

/** What one statement looks up at most; the ports' own bound. */
const KEYS_MAX = 1_000;

/**
 * Turns many look-ups by key into few statements: whatever is asked for while one is on its way goes into the next. One caller alone
 * never waits for company. Each read begins after its call, so that it sees all that was committed before.
 */
export class GatheringReader<V> {
  private queue: Waiting<V>[] = [];
  private running = false;

  /**
   * @param readAll looks up distinct keys, 1 to 1,000 of them
   * @param missing the value of a key that its answer lacks
   */
  constructor(
    private readonly readAll: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
    private readonly missing: V,
  ) {}

  read(key: string): Promise<V> {
    return new Promise((resolve, reject) => {
      this.queue.push({ key, resolve, reject });
      if (!this.running) void this.run();
    });
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.queue.length > 0) {
      // One turn of the event loop lets the requests that have already arrived join.
      await new Promise((resolve) => setImmediate(resolve));
      const batch = this.queue.splice(0, KEYS_MAX);
      try {
        const found = await this.readAll([...new Set(batch.map(({ key }) => key))]);
        for (const { key, resolve } of batch) resolve(found.get(key) ?? this.missing);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.running = false;
  }
}
