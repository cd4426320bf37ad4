import { LogOverloaded, LogUnavailable } from '#domain';

interface Waiting<V> {
  readonly key: string;
  readonly resolve: (value: V) => void;
  readonly reject: (error: unknown) => void;
}

/** What one statement looks up at most; the ports' own bound. */
const KEYS_MAX = 1_000;
/** About a second of full load; whoever waits longer is better served by a refusal. */
const QUEUE_MAX = 5_000;

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

  /** @throws LogOverloaded where too many wait already; whatever the look-up throws */
  read(key: string): Promise<V> {
    if (this.queue.length >= QUEUE_MAX) return Promise.reject(new LogOverloaded(`${QUEUE_MAX} reads are already waiting.`));
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
      await this.serve(this.queue.splice(0, KEYS_MAX));
    }
    this.running = false;
  }

  private async serve(batch: readonly Waiting<V>[]): Promise<void> {
    const keys = new Set(batch.map(({ key }) => key));
    try {
      const found = await this.readAll([...keys]);
      for (const { key, resolve } of batch) resolve(found.get(key) ?? this.missing);
    } catch (error) {
      if (error instanceof LogUnavailable || keys.size === 1) {
        for (const { reject } of batch) reject(error);
        return;
      }
      // What is stored under one of the keys can't be read. Halving finds it in a few more statements; its neighbours do not pay for it.
      const half = new Set([...keys].slice(0, Math.ceil(keys.size / 2)));
      await this.serve(batch.filter(({ key }) => half.has(key)));
      await this.serve(batch.filter(({ key }) => !half.has(key)));
    }
  }
}
