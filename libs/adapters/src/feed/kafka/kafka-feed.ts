import type { EachBatchPayload, Kafka } from 'kafkajs';
import type { FeedConsumer } from '#domain';
import { PARKED_TOPIC } from '../../broker/kafka/topics.js';
import type { ParkedRecords } from '../../postgres/parked-records.js';
import type { Feed } from '../feed.js';
import { BatchDelivery, DeliveryState } from './batch-delivery.js';
import { ConsumerSession, REBALANCE_TIMEOUT_MS } from './consumer-session.js';
import { lagOf } from './lag.js';
import { Parking } from './parking.js';
import { SharedTurns } from './shared-turns.js';

export interface KafkaFeedOptions {
  /** A client of its own for each call: consumers must not share one. */
  readonly kafka: () => Kafka;
  readonly topic: string;
  /** Without a heartbeat for this long this process's partitions go to others. */
  readonly sessionTimeoutMs: number;
  /** Where copies of records go that can't be taken. */
  readonly parkedTopic?: string;
  /** Its name makes the group: `onefold-` and the name. What several partitions bring at once is one call. */
  readonly consumer: FeedConsumer;
  readonly parked: Pick<ParkedRecords, 'add'>;
  readonly onError: (error: Error) => void;
  readonly onProgress?: (position: bigint, events: number) => void;
  /** A record about this operation was put aside; the feed goes on only after this has resolved. */
  readonly onParked?: (operationId: string) => Promise<void>;
  /** Without a fetch, a heartbeat or a join for this long the client counts as dead and is replaced. */
  readonly silenceMsMax?: number;
}

/** Since the process began. */
export interface KafkaFeedCounts {
  /** Records of an unknown event type, passed over. */
  readonly ignored: number;
  /** Records put aside. */
  readonly parked: number;
  /** Consumers that died and were replaced. */
  readonly restarts: number;
}

/** A rejoin waits for the slowest member of the group, and half as long again for the answers. */
const SILENCE_MS_MAX = 1.5 * REBALANCE_TIMEOUT_MS;
/** A stopping process has ten seconds before it is killed; what is not done by then goes on until the process ends. */
const STOP_MS_MAX = 10_000;
const RESTART_DELAY_MS = 200;
const RESTART_DELAY_MAX_MS = 10_000;

/**
 * Hands the events of the topic to one consumer: in order per operation, at least once, from the offsets of its group, which move only
 * behind what the consumer has taken or what was put aside. Processes with the same consumer share the partitions.
 */
export class KafkaFeed implements Feed {
  private readonly state = new DeliveryState();
  private readonly parking: Parking;
  private readonly turns: SharedTurns;
  private readonly groupId: string;
  private session: ConsumerSession | null = null;
  /** Null while no group has been joined. */
  private assigned: readonly number[] | null = null;
  private restarts = 0;
  private stopped = false;
  private loop: Promise<void> | null = null;
  private endSleep: () => void = () => undefined;

  constructor(private readonly options: KafkaFeedOptions) {
    this.groupId = `onefold-${options.consumer.name}`;
    this.turns = new SharedTurns(options.consumer);
    this.parking = new Parking({ kafka: options.kafka, parkedTopic: options.parkedTopic ?? PARKED_TOPIC, parked: options.parked });
  }

  start(): void {
    this.loop ??= this.run();
  }

  /**
   * Finishes the chunk under way, commits and leaves the group, at any point of joining it. Returns within 10 s; where the broker or the
   * consumer takes longer, the rest is done in the background. No further event is handed over in any case.
   */
  async stop(): Promise<void> {
    this.stopped = true;
    this.endSleep();
    const left = Promise.all([this.session?.close(), this.loop]).then(() => this.parking.close());
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, STOP_MS_MAX)));
    await Promise.race([left, late]);
    clearTimeout(timer);
  }

  /** It has joined its group, its client is alive, and no partition stands still in front of a failure. */
  healthy(): boolean {
    return !this.stopped && this.assigned !== null && this.state.failing.size === 0;
  }

  /** Records of this process's partitions that are not finished. Null while it has none assigned, or the broker does not say. */
  async lag(): Promise<number | null> {
    const { session, assigned, groupId } = this;
    if (!session || !assigned) return null;
    return lagOf(session.admin, { groupId, topic: this.options.topic, partitions: assigned, nextOffsets: this.state.nextOffsets });
  }

  get counts(): KafkaFeedCounts {
    return { ignored: this.state.ignored, parked: this.state.parked, restarts: this.restarts };
  }

  /** One client after the other, for as long as the feed runs: a dead one is given up for good. */
  private async run(): Promise<void> {
    for (let failures = 0; !this.stopped;) {
      const reason = await this.live();
      const hadJoined = this.assigned !== null;
      this.assigned = null;
      if (this.stopped) return;
      this.restarts++;
      this.options.onError(reason ?? new Error('The Kafka consumer has ended.'));
      failures = hadJoined ? 1 : failures + 1;
      await this.sleep(Math.min(RESTART_DELAY_MAX_MS, RESTART_DELAY_MS * 2 ** Math.min(failures - 1, 10)));
    }
  }

  /** @returns why it has ended */
  private async live(): Promise<Error | null> {
    try {
      this.session = this.openSession();
    } catch (error) {
      return error as Error;
    }
    const reason = await this.session.ended;
    // A silent client may never finish closing. It hands nothing over any more, and the group drops it when its heartbeats stay away.
    void this.session.close();
    return reason;
  }

  private delivery(payload: EachBatchPayload, isOpen: () => boolean): BatchDelivery {
    const { turns, parking } = this;
    return new BatchDelivery({ ...this.options, turns, parking }, this.state, payload, isOpen);
  }

  private openSession(): ConsumerSession {
    const { kafka, topic, sessionTimeoutMs, onError, silenceMsMax = SILENCE_MS_MAX } = this.options;
    return new ConsumerSession({
      kafka: kafka(),
      groupId: this.groupId,
      topic,
      sessionTimeoutMs,
      silenceMsMax,
      eachBatch: (payload, isOpen) => this.delivery(payload, isOpen).run(),
      onAssigned: (partitions) => {
        this.assigned = partitions;
        this.state.nextOffsets.clear();
      },
      onError,
    });
  }

  private sleep(ms: number): Promise<void> {
    if (this.stopped) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.endSleep = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
