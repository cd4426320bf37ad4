import type { Admin } from 'kafkajs';

/** A scrape waits no longer; a broker that is there answers in milliseconds. */
const ANSWER_MS_MAX = 3_000;

export interface LagQuestion {
  readonly groupId: string;
  readonly topic: string;
  readonly partitions: readonly number[];
  /** Offset of the next record, where this process has come that far since it got the partition. */
  readonly nextOffsets: ReadonlyMap<number, bigint>;
}

/** High watermark minus next offset, over the partitions. Null where the broker does not say. */
export async function lagOf(admin: Admin, question: LagQuestion): Promise<number | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, ANSWER_MS_MAX, null)));
  try {
    return await Promise.race([askLag(admin, question).catch(() => null), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function askLag(admin: Admin, { groupId, topic, partitions, nextOffsets }: LagQuestion): Promise<number> {
  const isKnown = partitions.every((partition) => nextOffsets.has(partition));
  const [marks, committed] = await Promise.all([
    admin.fetchTopicOffsets(topic),
    isKnown ? [] : admin.fetchOffsets({ groupId, topics: [topic] }).then(([answer]) => answer?.partitions ?? []),
  ]);
  let lag = 0n;
  for (const { partition, high, low } of marks) {
    if (!partitions.includes(partition)) continue;
    const stored = BigInt(committed.find((each) => each.partition === partition)?.offset ?? -1);
    // What was committed may have been deleted since; nothing committed means from the beginning.
    const next = nextOffsets.get(partition) ?? (stored > BigInt(low) ? stored : BigInt(low));
    if (BigInt(high) > next) lag += BigInt(high) - next;
  }
  return Number(lag);
}
