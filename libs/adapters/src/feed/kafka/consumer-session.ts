import type { Admin, Consumer, EachBatchPayload, Kafka } from 'kafkajs';

export interface SessionOptions {
  /** Of this session alone: the client keeps state by group in it that two consumers would clear for each other. */
  readonly kafka: Kafka;
  readonly groupId: string;
  /** Without a heartbeat for this long the broker gives the partitions to others; at least twice the interval of heartbeats, 3 s. */
  readonly sessionTimeoutMs: number;
  readonly topic: string;
  readonly eachBatch: (payload: EachBatchPayload, isOpen: () => boolean) => Promise<void>;
  /** After this long without a sign of life from the client the session counts as dead. */
  readonly silenceMsMax: number;
  /** Partitions of the topic that are this consumer's from now on. */
  readonly onAssigned: (partitions: readonly number[]) => void;
  /** What went wrong while the session was closed; it has no other way to be told. */
  readonly onError: (error: Error) => void;
}

const HEARTBEAT_INTERVAL_MS = 3_000;
/** Longer than any chunk of a consumer takes: at a rebalance the group waits for each member's. */
export const REBALANCE_TIMEOUT_MS = 60_000;
/** How long the broker holds a fetch that finds nothing; also how long a stop may have to wait. */
const FETCH_WAIT_MS = 500;
/** Bounds a batch, and with the number of partitions the memory; a larger record still comes, alone. */
const PARTITION_BYTES_MAX = 262_144;
/** About 20 s of trying; then the session ends and the feed opens a new one. */
const RETRY = { retries: 8, initialRetryTime: 100, maxRetryTime: 5_000 };
const LOOK_EVERY_MS_MAX = 1_000;

/** The client has shown no sign of life for too long. */
export class ConsumerSilent extends Error {
  override readonly name = 'ConsumerSilent';
}

/**
 * The life of one kafkajs consumer: it joins, reads, and ends by itself (a crash, a silence) or by `close`. It never restarts.
 *
 * To close it is the hard part. `disconnect` does nothing for a consumer that is still joining, which then joins after all, has nobody left
 * to stop it and holds partitions. So nothing is disconnected before `run` has settled: from then on the client knows its own state,
 * finishes the fetch or the rejoin under way, and leaves the group. Nor does the client restart itself after a crash.
 */
export class ConsumerSession {
  readonly admin: Admin;
  /** Resolves when the session has ended: with the reason, or null after `close`. */
  readonly ended: Promise<Error | null>;
  private readonly consumer: Consumer;
  private readonly opened: Promise<void>;
  private end!: (reason: Error | null) => void;
  private open = true;
  private closed: Promise<void> | null = null;
  private heardAtMs = performance.now();
  private readonly watch: NodeJS.Timeout;

  constructor(private readonly options: SessionOptions) {
    const { kafka, groupId, sessionTimeoutMs, silenceMsMax } = options;
    this.ended = new Promise((resolve) => (this.end = resolve));
    this.admin = kafka.admin({ retry: RETRY });
    this.consumer = kafka.consumer({
      groupId,
      sessionTimeout: sessionTimeoutMs,
      heartbeatInterval: HEARTBEAT_INTERVAL_MS,
      rebalanceTimeout: REBALANCE_TIMEOUT_MS,
      maxWaitTimeInMs: FETCH_WAIT_MS,
      maxBytesPerPartition: PARTITION_BYTES_MAX,
      allowAutoTopicCreation: false,
      // A restart of the client's own could not be stopped once `disconnect` has returned.
      retry: { ...RETRY, restartOnFailure: async () => false },
    });
    this.listen();
    this.watch = setInterval(() => this.lookForLife(), Math.min(LOOK_EVERY_MS_MAX, silenceMsMax / 4));
    this.opened = this.joinAndRun().catch((error: unknown) => this.end(error as Error));
  }

  /** Leaves the group for good. Resolves when that is done, which a broker that is away can delay; never rejects. */
  close(): Promise<void> {
    this.closed ??= this.leave();
    return this.closed;
  }

  private async leave(): Promise<void> {
    this.open = false;
    clearInterval(this.watch);
    this.end(null);
    await this.opened;
    for (const client of [this.consumer, this.admin])
      await client.disconnect().catch((error: unknown) => this.options.onError(error as Error));
  }

  private async joinAndRun(): Promise<void> {
    const { topic, eachBatch } = this.options;
    const steps = [
      () => this.consumer.connect(),
      () => this.admin.connect(),
      () => this.consumer.subscribe({ topics: [topic], fromBeginning: true }),
    ];
    for (const step of steps) {
      await step();
      if (!this.open) return;
    }
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [topic] });
    if (!this.open) return;
    await this.consumer.run({
      autoCommit: true,
      eachBatchAutoResolve: false,
      // As many as could all be ours: a slow partition must not take the turn of another.
      partitionsConsumedConcurrently: Math.max(1, topics[0]?.partitions.length ?? 1),
      eachBatch: async (payload) => {
        if (this.open) await eachBatch(payload, () => this.open);
      },
    });
  }

  private listen(): void {
    const { consumer } = this;
    const { FETCH, HEARTBEAT, GROUP_JOIN, CRASH } = consumer.events;
    const hear = () => (this.heardAtMs = performance.now());
    consumer.on(FETCH, hear);
    consumer.on(HEARTBEAT, hear);
    consumer.on(GROUP_JOIN, ({ payload }) => {
      hear();
      if (this.open) this.options.onAssigned(payload.memberAssignment[this.options.topic] ?? []);
    });
    consumer.on(CRASH, ({ payload }) => this.end(payload.error));
  }

  private lookForLife(): void {
    const silentMs = performance.now() - this.heardAtMs;
    if (silentMs <= this.options.silenceMsMax) return;
    this.end(new ConsumerSilent(`The Kafka consumer has shown no sign of life for ${Math.round(silentMs / 1_000)} s.`));
  }
}
