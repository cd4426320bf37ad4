/** One more way to reach a broker: who comes by it is told of the whole cluster by addresses of the same way. */
export interface Route {
  /** Capital letters, digits and underscores. */
  readonly name: string;
  readonly port: number;
  /** What is told to whoever comes by it; another than `port` where something stands between. */
  readonly advertisedPort: number;
}

export interface NodePorts {
  readonly broker: number;
  readonly controller: number;
  readonly routes: readonly Route[];
}

export interface BrokerOptions {
  /** From 1, as the list of ports counts. */
  readonly id: number;
  readonly ports: readonly NodePorts[];
  readonly logFolder: string;
  /** Name of the route by which the brokers reach each other; null: the one that everybody has. */
  readonly routeBetween: string | null;
}

const ALL = 'PLAINTEXT';

/** `server.properties` of one combined broker and controller on this machine. */
export function brokerSettings({ id, ports, logFolder, routeBetween }: BrokerOptions): string {
  const replicas = ports.length === 1 ? 1 : 3;
  const inSync = ports.length === 1 ? 1 : 2;
  const own = ports[id - 1]!;
  const routes: readonly Route[] = [{ name: ALL, port: own.broker, advertisedPort: own.broker }, ...own.routes];
  const settings: Record<string, string | number | boolean> = {
    'process.roles': 'broker,controller',
    'node.id': id,
    'controller.quorum.voters': ports.map(({ controller }, index) => `${index + 1}@127.0.0.1:${controller}`).join(','),
    'controller.listener.names': 'CONTROLLER',
    listeners: [...routes.map(({ name, port }) => addressOf(name, port)), addressOf('CONTROLLER', own.controller)].join(','),
    'advertised.listeners': routes.map(({ name, advertisedPort }) => addressOf(name, advertisedPort)).join(','),
    'listener.security.protocol.map': [...routes.map(({ name }) => name), 'CONTROLLER'].map((name) => `${name}:PLAINTEXT`).join(','),
    'inter.broker.listener.name': routeBetween ?? ALL,
    // Of each route: with a dozen routes the usual three would be dozens of idle threads.
    'num.network.threads': own.routes.length > 0 ? 1 : 3,
    'log.dirs': logFolder,
    // Durability: with acks=all a message is on two brokers before it counts, and no broker that lacks it may lead.
    'default.replication.factor': replicas,
    'min.insync.replicas': inSync,
    'unclean.leader.election.enable': false,
    'offsets.topic.replication.factor': replicas,
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': inSync,
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': inSync,
    'auto.create.topics.enable': false,
    // A killed broker is known to be gone after this; the default of 9 s only makes everybody wait.
    'broker.session.timeout.ms': 6_000,
    'group.initial.rebalance.delay.ms': 0,
    // A few groups: fifty partitions of offsets would only be fifty folders to recover.
    'offsets.topic.num.partitions': 6,
    'transaction.state.log.num.partitions': 6,
    // The initial 128 MB are taken at the start, by heaps that are not much larger; what is compacted here are a few thousand offsets.
    'log.cleaner.dedupe.buffer.size': 16 * 1_048_576,
  };
  return `${Object.entries(settings)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')}\n`;
}

function addressOf(name: string, port: number): string {
  return `${name}://127.0.0.1:${port}`;
}
