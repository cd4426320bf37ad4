import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { packageRoot } from '#adapters/package-root.js';
import { stopAbandonedPostgres, type Settings } from '#adapters/postgres/embedded/index.js';
import { allOf } from './all-of.js';
import { StackDatabase, type DatabaseProcess } from './database.js';
import { startKafkaCluster, type KafkaCluster, type KafkaRoutes } from './kafka/kafka-cluster.js';
import { pickPorts } from './ports.js';
import {
  makeSecrets,
  plainEnvironment,
  SERVICE_NAMES,
  sharedEnvironment,
  type Addresses,
  type Environment,
  type ServiceName,
} from './service-environment.js';
import { ServiceNotStarted, SpawnedService, type ServiceEnd, type ServiceProcess } from './service-process.js';
import { makeTemporaryFolder } from './temporary-folder.js';

export type { ServiceEnd, ServiceProcess } from './service-process.js';
export type { KafkaRoutes } from './kafka/kafka-cluster.js';
export type { Addresses, ServiceName } from './service-environment.js';

export interface StackOptions {
  /** Kafka brokers; initially 1. */
  readonly brokers?: 1 | 3;
  /** A cluster that runs already (`host:port`, comma separated), in place of one of our own. */
  readonly kafkaBrokers?: string;
  /** Processes of each service; initially 2. */
  readonly instances?: Partial<Record<ServiceName, number>>;
  /** Variables for all services (`all`), for each process of one, or for the lab; they go before what the stack sets. */
  readonly env?: Partial<Record<ServiceName | 'all' | 'provider-lab', Environment>>;
  /** PostgreSQL settings that go before ours. */
  readonly databaseSettings?: Settings;
  /** Left out: a temporary folder, removed at the end. A stack goes on with the data of the last one on its folder. */
  readonly dataDir?: string;
  /** Of the command APIs, counted up from the first, and of the lab. Left out: free ones. */
  readonly ports?: { readonly api?: number; readonly lab?: number };
  /** What stands between the parts, where they are not to reach each other directly. */
  readonly network?: StackNetwork;
  /** Told of a process that ended though nobody asked for it: `relay-1`, `kafka-1`, `database-1` ... */
  readonly onEnd?: (end: ServiceEnd) => void;
  /** Told what is being done, one short sentence at a time, for a person who waits. */
  readonly onProgress?: (text: string) => void;
}

/** Puts something between the parts of a stack, for example proxies that break connections. */
export interface StackNetwork {
  /** Only with a cluster of our own. */
  readonly kafka: KafkaRoutes;
  /** @param title for example `relay-1`. @returns where this process is to find the others */
  addressesFor(title: string, addresses: Addresses): Promise<Addresses>;
}

/** The distributed layout on this machine: every part a process of its own. */
export interface Stack {
  /** Each command API. */
  readonly api: readonly string[];
  /** Bearer key of tenant `dev` with the role `admin`. */
  readonly key: string;
  /** Of the identities and of the data keys, as the services are given them. */
  readonly secrets: readonly string[];
  readonly lab: string;
  readonly labProcess: ServiceProcess;
  /** Without nodes where `kafkaBrokers` was given. */
  readonly kafka: KafkaCluster;
  /** Holds a secret. */
  readonly database: string;
  readonly postgres: DatabaseProcess;
  /** All but the lab, in the order of `SERVICE_NAMES`. */
  readonly services: readonly ServiceProcess[];
  readonly dataDir: string;
  /** Ends all, paused ones too: callers' side first, database last. Takes at most about two minutes; repeated calls wait for the first. */
  stop(): Promise<void>;
}

const PREFIX = 'onefold-stack-';
const INSTANCES_INITIAL = 2;
/** A service gives up by itself after 15 s (ONEFOLD_SHUTDOWN_TIMEOUT_MS); on a machine under load it is late for that too. */
const STOP_TIMEOUT_MS = 25_000;

/**
 * Starts database, broker, lab and services, each kind at once, and resolves when everything answers. All but a database on a lasting
 * folder end with this process, also when it is killed.
 *
 * @throws KafkaUnavailable, KafkaStartFailed, EmbeddedPostgresError, ServiceNotStarted; everything already started is ended first
 */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const isTemporary = options.dataDir === undefined;
  const dataDir = isTemporary ? await makeTemporaryFolder(PREFIX, stopDatabaseIn) : resolve(options.dataDir!);
  const parts = new Parts(options, dataDir, isTemporary);
  try {
    return await parts.start();
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

async function stopDatabaseIn(folder: string): Promise<void> {
  // Nothing is known of a folder in which no database was made.
  if (existsSync(join(folder, 'postgres'))) await stopAbandonedPostgres(folder);
}

class Parts {
  private database: StackDatabase | undefined;
  private kafka: KafkaCluster | undefined;
  private lab: SpawnedService | undefined;
  private services: SpawnedService[] = [];
  private stopping: Promise<void> | undefined;
  private isComplete = false;
  private readonly endsWhileStarting: ServiceEnd[] = [];

  constructor(
    private readonly options: StackOptions,
    private readonly dataDir: string,
    private readonly isTemporary: boolean,
  ) {}

  async start(): Promise<Stack> {
    const { onProgress = () => undefined } = this.options;
    await mkdir(join(this.dataDir, 'logs'), { recursive: true });
    const { key, secrets, env } = makeSecrets(this.dataDir);
    const [database, kafka, lab] = await allOf([this.startDatabase(), this.startKafka(), this.startLab()] as const);
    const smtp = `smtp://${String(lab.ready['smtp'])}`;
    const addresses = { database: database.url, kafka: kafka.bootstrap, lab: lab.url, smtp };
    onProgress('starting the services');
    this.services = await this.makeServices(addresses, env);
    await allOf(this.services.map((service) => service.start()));
    const [ended] = this.endsWhileStarting;
    if (ended) throw new ServiceNotStarted(`${ended.process} ended while others were starting (${ended.how}):\n${ended.lastWords}`);
    this.isComplete = true;
    return {
      api: this.services.filter(({ name }) => name === 'command-api').map(({ url }) => url),
      key,
      secrets,
      lab: lab.url,
      labProcess: lab,
      kafka,
      database: database.url,
      postgres: database,
      services: this.services,
      dataDir: this.dataDir,
      stop: () => this.stop(),
    };
  }

  /** Who takes work goes before who does it, and who stores it goes last. One that fails to stop does not keep the others from it. */
  stop(): Promise<void> {
    return (this.stopping ??= this.stopInTurn());
  }

  private async stopInTurn(): Promise<void> {
    const isApi = ({ name }: SpawnedService) => name === 'command-api';
    const stopEach = (services: readonly SpawnedService[]) => allOf(services.map((service) => service.stop()));
    const turns = [
      () => stopEach(this.services.filter(isApi)),
      () => stopEach(this.services.filter((service) => !isApi(service))),
      () => this.lab?.stop(),
      () => this.kafka?.stop(),
      () => this.database?.stop(),
      () => (this.isTemporary ? rm(this.dataDir, { recursive: true, force: true }) : undefined),
    ];
    const failures: unknown[] = [];
    for (const turn of turns) await Promise.resolve(turn()).catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, 'The stack did not stop cleanly.');
  }

  private async startDatabase(): Promise<StackDatabase> {
    const { databaseSettings: settings, onProgress = () => undefined } = this.options;
    const [port] = (await pickPorts(1)) as [number];
    const { dataDir, isTemporary } = this;
    const onEnd = () => this.tellEnd({ process: 'database-1', how: 'see postgres.log', lastWords: '' });
    this.database = new StackDatabase({ dataDir, port, isTemporary, ...(settings && { settings }), onProgress, onEnd });
    await this.database.start();
    return this.database;
  }

  private async startKafka(): Promise<KafkaCluster> {
    const { brokers = 1, kafkaBrokers, network, onProgress = () => undefined } = this.options;
    if (kafkaBrokers) return { bootstrap: kafkaBrokers, nodes: [], stop: () => Promise.resolve() };
    this.kafka = await startKafkaCluster({
      brokers,
      dataDir: join(this.dataDir, 'kafka'),
      ...(network && { routes: network.kafka }),
      onProgress,
      onExit: ({ id, code, signal }) =>
        this.tellEnd({ process: `kafka-${id}`, how: signal ?? `exit status ${code}`, lastWords: 'see broker.log' }),
    });
    return this.kafka;
  }

  private async startLab(): Promise<SpawnedService> {
    const { env, ports } = this.options;
    const [own, smtp] = (await pickPorts(2)) as [number, number];
    this.lab = this.makeService('provider-lab', 1, {
      ...plainEnvironment(),
      LAB_PORT: String(ports?.lab ?? own),
      LAB_SMTP_PORT: String(smtp),
      LAB_LEDGER: join(this.dataDir, 'lab-ledger.ndjson'),
      ...env?.['provider-lab'],
    });
    await this.lab.start();
    return this.lab;
  }

  /** Ports are fixed here, so that a service that was killed returns under its address. */
  private async makeServices(addresses: Addresses, secrets: Environment): Promise<SpawnedService[]> {
    const { instances = {}, env = {}, ports, network, brokers = 1 } = this.options;
    const wanted = SERVICE_NAMES.flatMap((name) =>
      Array.from({ length: instances[name] ?? INSTANCES_INITIAL }, (_, index) => ({ name, instance: index + 1 })),
    );
    const free = await pickPorts(wanted.length);
    const services: SpawnedService[] = [];
    for (const [index, { name, instance }] of wanted.entries()) {
      const given = name === 'command-api' && ports?.api ? ports.api + instance - 1 : undefined;
      const seen = (await network?.addressesFor(`${name}-${instance}`, addresses)) ?? addresses;
      const shared = sharedEnvironment(seen, secrets, brokers);
      services.push(this.makeService(name, instance, { ...shared, PORT: String(given ?? free[index]), ...env.all, ...env[name] }));
    }
    return services;
  }

  private makeService(name: string, instance: number, env: Environment): SpawnedService {
    return new SpawnedService({
      name,
      instance,
      program: join(packageRoot, 'dist', 'apps', name, 'src', 'main.js'),
      env,
      logFile: join(this.dataDir, 'logs', `${name}-${instance}.log`),
      stopTimeoutMs: STOP_TIMEOUT_MS,
      onEnd: (end) => this.tellEnd(end),
    });
  }

  private tellEnd(end: ServiceEnd): void {
    if (!this.isComplete) this.endsWhileStarting.push(end);
    // While all are being ended nobody asks which went first.
    else if (!this.stopping) this.options.onEnd?.(end);
  }
}
