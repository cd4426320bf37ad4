import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres, type EmbeddedPostgres, type EmbeddedPostgresOptions } from '#adapters/postgres/embedded/index.js';
import { FaultBroker, type CaseTopic } from './broker.js';

/** Each process holds up to 17 connections (8 + 8 in its pools, one for appends); several cases with two processes each run at once. */
const CONNECTIONS_MAX = '300';
/** The fault that keeps a server from starting is over in seconds. */
const RESTARTS_MAX = 60;
const RESTART_DELAY_MS = 500;

/** One embedded PostgreSQL with a database for each case, and a broker as soon as a case needs one. */
export class FaultServer {
  private broker: Promise<FaultBroker> | undefined;
  private restarting: Promise<void> = Promise.resolve();
  private isStopping = false;

  private constructor(
    private postgres: EmbeddedPostgres,
    private readonly options: EmbeddedPostgresOptions,
    private readonly ownsFolder: boolean,
  ) {}

  /** @param folder left out: a temporary one, removed by `stop` */
  static async start(folder?: string): Promise<FaultServer> {
    const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'onefold-faults-')));
    const options = { dataDir, settings: { max_connections: CONNECTIONS_MAX } };
    return new FaultServer(await startEmbeddedPostgres(options), options, folder === undefined);
  }

  /** From now on a server that ends by itself is started again at the same port, as a supervisor would. */
  supervise(): void {
    this.postgres.onExit(() => {
      this.restarting = this.restart();
    });
  }

  private async restart(): Promise<void> {
    const port = Number(new URL(this.postgres.url).port);
    for (let restarts = 0; restarts < RESTARTS_MAX && !this.isStopping; restarts++) {
      try {
        // One that has ended still holds the lock of its data folder.
        await this.postgres.stop();
        this.postgres = await startEmbeddedPostgres({ ...this.options, port });
        return this.supervise();
      } catch {
        await pause(RESTART_DELAY_MS); // Told by whoever then misses the database.
      }
    }
  }

  async createDatabase(): Promise<CaseDatabase> {
    const name = `case_${randomBytes(6).toString('hex')}`;
    const url = new URL(this.postgres.url);
    await this.run(url.href, `create database ${name}`);
    const serverUrl = url.href;
    url.pathname = `/${name}`;
    return new CaseDatabase(url.href, name, serverUrl);
  }

  /** @throws KafkaUnavailable */
  async createTopic(): Promise<CaseTopic> {
    this.broker ??= FaultBroker.start();
    return (await this.broker).createTopic();
  }

  async stop(): Promise<void> {
    const broker = await this.broker?.catch(() => undefined); // Told to the case that asked for it.
    await broker?.stop();
    this.isStopping = true;
    await this.restarting;
    await this.postgres.stop();
    if (this.ownsFolder) await rm(this.options.dataDir, { recursive: true, force: true });
  }

  private async run(url: string, text: string): Promise<void> {
    await once(url, text);
  }
}

export interface StoredEvent {
  readonly position: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
  readonly chain: string;
  readonly id: string;
}

export class CaseDatabase {
  constructor(
    readonly url: string,
    private readonly name: string,
    private readonly serverUrl: string,
  ) {}

  /**
   * Steps the database's clock, for whoever asks it from now on; a process asks every five seconds, and when it starts. Only a superuser
   * may run `alter database ... set onefold.clock_offset_ms`, so the owner puts the offset into the function that would read it.
   * @param ms from the machine's time
   */
  async moveClock(ms: number): Promise<void> {
    if (!Number.isSafeInteger(ms)) throw new Error(`${ms} is no number of milliseconds.`);
    const text = `create or replace function onefold.now_ms() returns bigint language sql volatile as $$
      select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + (${ms})::bigint $$`;
    await once(this.url, text);
  }

  /** Ends every session of the database, as a failover or an operator would; returns how many. */
  async terminateSessions(): Promise<number> {
    // Those of our own role: a worker of the server's (autovacuum) is not ours to end.
    const text =
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and usename = current_user and pid <> pg_backend_pid()';
    return (await once(this.serverUrl, text, [this.name])).length;
  }

  /**
   * Whether every reader of the log has come to its end.
   * @param readers how many there are
   */
  async feedsAreThrough(readers: number): Promise<boolean> {
    const text = `select coalesce((select max(position) from onefold.events), 0) as head, count(*) as readers, min(position) as least
      from onefold.checkpoints`;
    const [row] = await once<{ head: string; readers: string; least: string | null }>(this.url, text);
    return row !== undefined && Number(row.readers) === readers && row.head === row.least;
  }

  events(): Promise<StoredEvent[]> {
    return once<StoredEvent>(
      this.url,
      `select position, stream, revision, type, data, metadata, encode(chain, 'hex') as chain, id from onefold.events order by position`,
    );
  }

  query<T extends object>(text: string, values: unknown[] = []): Promise<T[]> {
    return once<T>(this.url, text, values);
  }

  async drop(): Promise<void> {
    await once(this.serverUrl, `drop database if exists ${this.name} with (force)`);
  }
}

async function once<T extends object>(url: string, text: string, values: unknown[] = []): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(text, values)).rows;
  } finally {
    await client.end();
  }
}
