import pg from 'pg';
import type { KafkaNode } from '../../stack/kafka/kafka-cluster.js';
import { titleOf, type Director } from './director.js';
import { DISTURBANCES, type Link } from './link.js';
import { FREEZE_MS_MAX, LAB_FREEZE_MS_MAX } from './times.js';

export interface Fault {
  readonly name: string;
  /** Its share among all. */
  readonly weight: number;
  /** Breaks something, waits, and puts it right. */
  act(director: Director): Promise<void>;
}

/** A process may be away for moments or for longer than the session of a consumer. */
const AWAY_MS = { low: 0, high: 4_000 };
/** Of a broker: so that it is at times noticed as gone (6 s) and at times not. */
const BROKER_AWAY_MS = { low: 1_000, high: 9_000 };
const PARTITION_MS = { low: 500, high: 8_000 };
const DATABASE_AWAY_MS = { low: 0, high: 2_000 };
const FREEZE_MS_MIN = 500;

/** One of three at a time: the topic asks for two brokers before it takes a record, and what takes none only waits. */
const ONE_BROKER = () => 'a broker';

export const FAULTS: readonly Fault[] = [
  {
    name: 'a service is killed',
    weight: 60,
    act: (director) =>
      director.withFree(director.stack.services, titleOf, async (service) => {
        await service.kill();
        director.killed(service.name);
        await director.wait(between(director, AWAY_MS));
        await director.startAgain(service, titleOf(service));
      }),
  },
  {
    name: 'a service is told to stop',
    weight: 6,
    act: (director) =>
      director.withFree(director.stack.services, titleOf, async (service) => {
        await service.stop();
        director.damage.restarts++;
        await director.startAgain(service, titleOf(service));
      }),
  },
  {
    name: 'a service freezes',
    weight: 8,
    act: (director) =>
      director.withFree(director.stack.services, titleOf, (service) =>
        freeze(director, service, director.random.between(FREEZE_MS_MIN, FREEZE_MS_MAX)),
      ),
  },
  {
    name: 'the way between two parts breaks',
    weight: 16,
    act: (director) =>
      director.withFree(
        director.network.all,
        ({ name }) => name,
        (link) => disturb(director, [link]),
      ),
  },
  {
    name: 'a service is cut off from everything',
    weight: 3,
    act: (director) =>
      director.withFree(director.stack.services, titleOf, (service) =>
        disturb(
          director,
          director.network.from(titleOf(service)).filter(({ isDisturbed }) => !isDisturbed),
        ),
      ),
  },
  {
    name: 'a broker is killed',
    weight: 2.5,
    act: (director) => director.withFree(director.stack.kafka.nodes, ONE_BROKER, killBroker(director)),
  },
  {
    name: 'a broker freezes',
    weight: 1.5,
    act: (director) =>
      director.withFree(director.stack.kafka.nodes, ONE_BROKER, (node) => freeze(director, node, between(director, BROKER_AWAY_MS))),
  },
  {
    name: 'the database is killed',
    weight: 1.5,
    act: (director) =>
      director.withFree(
        [director.stack.postgres],
        () => 'database',
        async (database) => {
          await database.kill();
          director.killed('database');
          await director.wait(between(director, DATABASE_AWAY_MS));
          await director.startAgain(database, 'database');
        },
      ),
  },
  {
    name: 'sessions of the database are ended',
    weight: 4,
    act: (director) =>
      director.withFree(
        [director.stack.postgres],
        () => 'database',
        ({ url }) => endSessions(director, url),
      ),
  },
  {
    name: 'the provider freezes',
    weight: 1.5,
    act: (director) =>
      director.withFree([director.stack.labProcess], titleOf, (lab) =>
        freeze(director, lab, director.random.between(FREEZE_MS_MIN, LAB_FREEZE_MS_MAX)),
      ),
  },
];

function between({ random }: Director, { low, high }: { readonly low: number; readonly high: number }): number {
  return random.between(low, high);
}

async function freeze(director: Director, part: { pause(): void; resume(): void }, ms: number): Promise<void> {
  part.pause();
  director.damage.freezes++;
  try {
    await director.wait(ms);
  } finally {
    part.resume();
  }
}

async function disturb(director: Director, links: readonly Link[]): Promise<void> {
  const disturbance = director.random.pick(DISTURBANCES);
  for (const link of links) link.disturb(disturbance);
  director.damage.partitions += links.length;
  await director.wait(between(director, PARTITION_MS));
  for (const link of links) link.heal();
}

const killBroker = (director: Director) => async (node: KafkaNode) => {
  await node.kill();
  director.killed('kafka');
  await director.wait(between(director, BROKER_AWAY_MS));
  await director.startAgain(node, `kafka-${node.id}`);
};

/** Every other session: appends, polls and leaders' locks end in the midst of what they do. */
async function endSessions(director: Director, url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 5_000 });
  client.on('error', () => undefined); // The database may be on its way down; there is nothing to end then.
  try {
    await client.connect();
    const { rowCount } = await client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name like 'onefold%' and random() < 0.5",
    );
    director.damage.sessions_ended += rowCount ?? 0;
  } finally {
    await client.end().catch(() => undefined);
  }
}
