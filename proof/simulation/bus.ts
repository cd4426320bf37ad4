import { encodeCloudEvent } from '#adapters/broker/cloud-events.js';
import type { FeedConsumer, RecordedEvent } from '#domain';
import type { SubscriberFact, TopicRecord } from '../checker/check-invariants.js';
import { operationIdOf } from '../checker/world.js';
import type { Random } from './random.js';
import type { SimProcess } from './sim-process.js';
import type { VirtualTime } from './virtual-time.js';

export const PARTITIONS = 3;
const BATCH_MAX = 20;
const PUBLISH_MAX = 8;
const RETRY_MS = 300;

/** Who works off a batch, and in which order; a sabotaged one exchanges the two. */
export type Delivery = (handle: () => Promise<void>, commit: () => Promise<void>) => Promise<void>;

export const handleThenCommit: Delivery = async (handle, commit) => {
  await handle();
  await commit();
};

/** One process as the bus sees it. */
export interface BusMember {
  readonly process: SimProcess;
  readonly consumers: ReadonlyMap<string, FeedConsumer>;
  readonly readAll: (after: bigint, limit: number) => Promise<readonly RecordedEvent[]>;
}

/** Something that one member at a time works off, and another takes over when it is gone. */
interface Task {
  readonly name: string;
  /** Raised at each take-over: what an earlier owner still says no longer moves it. */
  generation: number;
  owner: BusMember | null;
  busy: boolean;
}

interface Assignment extends Task {
  readonly group: string;
  readonly partition: number;
  committed: number;
}

/** A topic with a relay that fills it from the log and groups that read it: in order per operation, at least once, and no more than that. */
export class Bus {
  readonly records: RecordedEvent[][] = Array.from({ length: PARTITIONS }, () => []);
  private readonly delivered = new Map<string, Set<bigint>>();
  private readonly assignments: Assignment[];
  private readonly relay: Task = { name: 'relay', generation: 0, owner: null, busy: false };
  private relayedTo = 0n;
  private readonly relayed = new Set<bigint>();

  constructor(
    private readonly time: VirtualTime,
    private readonly random: Random,
    groups: readonly string[],
    private readonly delivery: Delivery,
    private readonly hasMore: (after: bigint) => boolean,
  ) {
    this.assignments = groups.flatMap((group) =>
      Array.from({ length: PARTITIONS }, (_, partition) => ({
        name: `${group}/${partition}`,
        generation: 0,
        owner: null,
        busy: false,
        group,
        partition,
        committed: 0,
      })),
    );
  }

  /** Shares the tasks out anew; whoever loses one may still be at it. */
  rebalance(members: readonly BusMember[], shift = 0): void {
    const tasks: Task[] = [this.relay, ...this.assignments];
    tasks.forEach((task, index) => {
      const owner = members.length === 0 ? null : members[(index + shift) % members.length]!;
      if (owner === task.owner) return;
      task.generation++;
      task.owner = owner;
      task.busy = false;
    });
    this.poke();
  }

  /** Something may be there to be done. */
  poke(): void {
    if (this.hasMore(this.relayedTo)) this.begin(this.relay, (member) => this.publish(member));
    for (const assignment of this.assignments) {
      if (assignment.committed < this.records[assignment.partition]!.length) {
        this.begin(assignment, (member) => this.deliver(assignment, member));
      }
    }
  }

  /** Every group reads the last records of each partition once more. */
  rewind(records: number): void {
    for (const assignment of this.assignments) assignment.committed = Math.max(0, assignment.committed - records);
    this.poke();
  }

  get isIdle(): boolean {
    const caughtUp = this.assignments.every(({ partition, committed }) => committed >= this.records[partition]!.length);
    return caughtUp && !this.hasMore(this.relayedTo);
  }

  topicFacts(): TopicRecord[] {
    return this.records.flatMap((records, partition) =>
      records.map((event, offset) => {
        const { key, value, headers } = encodeCloudEvent(event);
        return {
          partition,
          offset,
          eventId: event.id,
          operationId: key,
          revision: event.revision,
          tenant: event.metadata.tenant,
          text: `${JSON.stringify(headers)}${value.toString()}`,
        };
      }),
    );
  }

  /** The relay's cursor is a position of the log; the groups' are offsets, and so as far as everything before them was handed over. */
  subscriberFacts(): SubscriberFact[] {
    return [
      { name: 'relay', cursor: this.relayedTo, delivered: this.relayed },
      ...[...new Set(this.assignments.map(({ group }) => group))].map((group) => ({
        name: group,
        cursor: this.isIdle ? this.relayedTo : 0n,
        delivered: this.delivered.get(group) ?? new Set<bigint>(),
      })),
    ];
  }

  private begin(task: Task, work: (member: BusMember) => Promise<void>): void {
    const { owner, generation } = task;
    if (task.busy || !owner) return;
    task.busy = true;
    this.time.after(this.random.between(1, 60), () =>
      owner.process.deliver(() => {
        if (task.generation !== generation) return;
        void work(owner)
          .catch(() => owner.process.delay(RETRY_MS))
          .then(() => {
            if (task.generation !== generation) return;
            task.busy = false;
            this.poke();
          });
      }),
    );
  }

  private async publish(member: BusMember): Promise<void> {
    const from = await member.process.port(() => this.relayedTo);
    const events = await member.readAll(from, this.random.between(1, PUBLISH_MAX));
    if (events.length === 0) return member.process.delay(RETRY_MS);
    await member.process.port(() => this.append(events));
    // Like a checkpoint in the database: it moves only from where this reader believes to stand.
    await member.process.port(() => {
      if (this.relayedTo === from) this.relayedTo = events.at(-1)!.position;
    });
  }

  private append(events: readonly RecordedEvent[]): void {
    for (const event of events) {
      this.relayed.add(event.position);
      this.records[partitionOf(event.stream)]!.push(event);
    }
    this.poke();
  }

  private async deliver(assignment: Assignment, member: BusMember): Promise<void> {
    const { group, partition, generation } = assignment;
    const from = assignment.committed;
    const batch = await member.process.port(() => this.records[partition]!.slice(from, from + this.random.between(1, BATCH_MAX)));
    const handle = async () => {
      await member.consumers.get(group)!.handle(batch);
      this.handed(group, batch);
    };
    const commit = () =>
      member.process.port(() => {
        // The broker refuses the offset of a member that it no longer counts.
        if (assignment.generation === generation && assignment.committed === from) assignment.committed = from + batch.length;
      });
    await this.delivery(handle, commit);
  }

  private handed(group: string, events: readonly RecordedEvent[]): void {
    const positions = this.delivered.get(group) ?? new Set<bigint>();
    this.delivered.set(group, positions);
    for (const { position } of events) positions.add(position);
  }
}

/** All events of an operation go one way. */
function partitionOf(stream: string): number {
  return Number.parseInt(operationIdOf(stream).slice(-4), 16) % PARTITIONS;
}
