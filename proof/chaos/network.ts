import type { Addresses, KafkaRoutes, StackNetwork } from '../../stack/stack.js';
import { Link } from './link.js';

/** Who consumes or publishes: each has a route of its own to every broker, so that it alone can be cut off. */
const KAFKA_CLIENTS = ['relay', 'dispatcher', 'projector'];
const BETWEEN = 'BETWEEN';

/** Every way between two parts of the stack, each through a link of its own. */
export class Network implements StackNetwork {
  readonly kafka: KafkaRoutes;
  private readonly links: Link[] = [];
  /** `host:port` of each broker as one process reaches it, by route. */
  private readonly bootstraps = new Map<string, string[]>();

  /** @param instances of each service */
  constructor(instances: number) {
    const own = KAFKA_CLIENTS.flatMap((name) => Array.from({ length: instances }, (_, index) => routeOf(`${name}-${index + 1}`)));
    this.kafka = {
      names: [...own, BETWEEN],
      between: BETWEEN,
      advertise: async (name, node, port) => {
        const from = name === BETWEEN ? 'brokers' : titleOf(name);
        const link = await this.open(`${from}>kafka-${node}`, port);
        this.bootstraps.set(name, [...(this.bootstraps.get(name) ?? []), `127.0.0.1:${link.port}`]);
        return link.port;
      },
    };
  }

  get all(): readonly Link[] {
    return this.links;
  }

  async addressesFor(title: string, addresses: Addresses): Promise<Addresses> {
    const database = await this.through(`${title}>database`, addresses.database);
    const lab = title.startsWith('dispatcher') ? await this.through(`${title}>lab`, addresses.lab) : addresses.lab;
    return { ...addresses, database, lab, kafka: this.bootstraps.get(routeOf(title))?.join(',') ?? addresses.kafka };
  }

  /** @returns the URLs at which callers reach the command APIs */
  toApis(urls: readonly string[]): Promise<string[]> {
    return Promise.all(urls.map((url, index) => this.through(`callers>command-api-${index + 1}`, url)));
  }

  /** The ways from one process to all others. */
  from(title: string): Link[] {
    return this.links.filter(({ name }) => name.startsWith(`${title}>`));
  }

  heal(): void {
    for (const link of this.links) link.heal();
  }

  async close(): Promise<void> {
    await Promise.all(this.links.map((link) => link.close()));
  }

  private async through(name: string, target: string): Promise<string> {
    const url = new URL(target);
    const link = await this.open(name, Number(url.port));
    url.host = `127.0.0.1:${link.port}`;
    // The URL class ends an HTTP origin with a slash, which a base URL in a catalogue would then have twice.
    return url.href.replace(/\/$/, '');
  }

  private async open(name: string, port: number): Promise<Link> {
    const link = await Link.open(name, port);
    this.links.push(link);
    return link;
  }
}

const routeOf = (title: string) => title.toUpperCase().replaceAll('-', '_');
const titleOf = (route: string) => route.toLowerCase().replaceAll('_', '-');
