import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { allOf } from '../all-of.js';
import { makeTemporaryFolder } from '../temporary-folder.js';
import { brokerFiles } from './broker-files.js';
import { BrokerNode, type KafkaNode, type NodeEnd } from './broker-node.js';
import { pickPorts } from '../ports.js';
import type { NodePorts, Route } from './settings.js';

export type { KafkaNode, NodeEnd } from './broker-node.js';

export interface KafkaClusterOptions {
  readonly brokers: 1 | 3;
  /** Left out: a temporary folder, removed at the end. A cluster goes on with the data of the last one on its folder. */
  readonly dataDir?: string;
  /** Of the brokers on 127.0.0.1, one each. Left out: free ones between 20000 and 30000. */
  readonly ports?: readonly number[];
  /** Further ways to reach each broker, and what stands in them. */
  readonly routes?: KafkaRoutes;
  /** Told of a broker that ended though nobody asked for it. */
  readonly onExit?: (end: NodeEnd) => void;
  /** Told what is being done, one short sentence at a time, for a person who waits. */
  readonly onProgress?: (text: string) => void;
}

export interface KafkaRoutes {
  readonly names: readonly string[];
  /** Of these names: the one by which the brokers reach each other. */
  readonly between: string;
  /** @returns the port at which callers of this route are to reach the broker that listens at `port` */
  advertise(name: string, node: number, port: number): Promise<number>;
}

export interface KafkaCluster {
  /** `127.0.0.1:port` of each broker, comma separated: what `KAFKA_BROKERS` takes. */
  readonly bootstrap: string;
  readonly nodes: readonly KafkaNode[];
  /** Ends all brokers, paused ones too. Takes at most about 20 s; repeated calls wait for the first. */
  stop(): Promise<void>;
}

const PREFIX = 'onefold-kafka-';

/**
 * A Kafka cluster of this machine: one broker, or three with every topic on all of them. Each is a controller as well (KRaft). They are
 * processes in sessions of their own and end with this process, also when it is killed (guard.ts).
 *
 * @throws KafkaUnavailable where Java or Maven is missing
 * @throws KafkaStartFailed with the end of the broker's log
 */
export async function startKafkaCluster(options: KafkaClusterOptions): Promise<KafkaCluster> {
  const { onExit = () => undefined, onProgress = () => undefined } = options;
  const libs = await brokerFiles({ onProgress });
  const folder = options.dataDir === undefined ? await makeTemporaryFolder(PREFIX) : resolve(options.dataDir);
  const clusterId = await clusterIdOf(folder, options.brokers);
  const ports = await portsOf(options);
  const nodes = ports.map((_, index) => {
    const id = index + 1;
    const routeBetween = options.routes?.between ?? null;
    return new BrokerNode({ id, ports, routeBetween, folder: join(folder, `node-${id}`), libs, clusterId, onExit });
  });
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= stopAll(nodes, options.dataDir === undefined ? folder : undefined));
  onProgress(options.brokers === 1 ? 'starting a Kafka broker' : `starting ${options.brokers} Kafka brokers`);
  try {
    await allOf(nodes.map((node) => node.launch()));
    await allOf(nodes.map((node) => node.untilItTakesPart()));
  } catch (error) {
    await stop();
    throw error;
  }
  return { bootstrap: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','), nodes, stop };
}

async function portsOf({ brokers, ports, routes }: KafkaClusterOptions): Promise<NodePorts[]> {
  if (ports && ports.length !== brokers) throw new Error(`ports names ${ports.length} ports for ${brokers} brokers; name one each.`);
  const names = routes?.names ?? [];
  const picked = await pickPorts(brokers * (2 + names.length));
  const next = () => picked.pop()!;
  const nodes: NodePorts[] = [];
  for (let id = 1; id <= brokers; id += 1) {
    const ways: Route[] = [];
    for (const name of names) {
      const port = next();
      ways.push({ name, port, advertisedPort: await routes!.advertise(name, id, port) });
    }
    nodes.push({ broker: ports?.[id - 1] ?? next(), controller: next(), routes: ways });
  }
  return nodes;
}

/** The id is made once for a folder: brokers refuse the data of another cluster. */
async function clusterIdOf(folder: string, brokers: number): Promise<string> {
  const file = join(folder, 'cluster.json');
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text !== undefined) {
    const kept = JSON.parse(text) as { id: string; brokers: number };
    if (kept.brokers === brokers) return kept.id;
    throw new Error(
      `${folder} holds a Kafka cluster of ${kept.brokers}, not of ${brokers}; ask for ${kept.brokers} or use another folder.`,
    );
  }
  await mkdir(folder, { recursive: true });
  // A first character that is no dash, since the id is also an argument of a program.
  const id = `A${randomBytes(16).toString('base64url').slice(1)}`;
  await writeFile(`${file}.unfinished`, JSON.stringify({ id, brokers }));
  await rename(`${file}.unfinished`, file);
  return id;
}

/** Nothing of a temporary folder is worth a clean end, which several controllers that end at once draw out until their time limits. */
async function stopAll(nodes: readonly BrokerNode[], temporary: string | undefined): Promise<void> {
  await allOf(nodes.map((node) => (temporary ? node.kill() : node.stop())));
  if (temporary) await rm(temporary, { recursive: true, force: true });
}
