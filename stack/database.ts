import { setTimeout as pause } from 'node:timers/promises';
import { inspectProcess } from '#adapters/postgres/embedded/process-info.js';
import { startEmbeddedPostgres, type EmbeddedPostgres, type Settings } from '#adapters/postgres/embedded/index.js';
import { guard } from './guard.js';

/** The embedded PostgreSQL server of a stack. Its port, its password and its data stay when it is killed. */
export interface DatabaseProcess {
  /** `postgresql://onefold:<password>@127.0.0.1:<port>/onefold`. Holds a secret. */
  readonly url: string;
  /** Of the postmaster that runs now, or of the last one. */
  readonly pid: number;
  /** SIGKILL to the postmaster, as when the memory runs out; its children end by themselves. Resolves when the postmaster is gone. */
  kill(): Promise<void>;
  /** Ends open sessions and stops the server. */
  stop(): Promise<void>;
  /** Starts it again on its port; it recovers from its log where it was killed. */
  start(): Promise<void>;
}

export interface DatabaseOptions {
  readonly dataDir: string;
  readonly port: number;
  /** Nobody will start a server on this folder again: it is ended with this process, also when that is killed. */
  readonly isTemporary: boolean;
  readonly settings?: Settings;
  readonly onProgress: (text: string) => void;
  /** Told of an end that nobody asked for. */
  readonly onEnd: () => void;
}

/** After a SIGKILL the kernel needs a moment. */
const GONE_WITHIN_MS = 10_000;
const LOOK_INTERVAL_MS = 20;

export class StackDatabase implements DatabaseProcess {
  private server: EmbeddedPostgres | undefined;
  private known: { readonly url: string; readonly pid: number } | undefined;
  private endIsWanted = false;

  constructor(private readonly options: DatabaseOptions) {}

  get url(): string {
    return this.started.url;
  }

  get pid(): number {
    return this.started.pid;
  }

  async start(): Promise<void> {
    if (this.server && !this.endIsWanted) return;
    // One that was killed still holds the lock of its data folder.
    await this.server?.stop();
    const { onEnd, isTemporary, ...options } = this.options;
    const server = await startEmbeddedPostgres(options);
    this.server = server;
    this.known = { url: server.url, pid: server.pid };
    this.endIsWanted = false;
    // QUIT ends its children as well. A server on a lasting folder stays, and the next start adopts it.
    if (isTemporary) guard().add(server.pid, 'QUIT');
    server.onExit(() => {
      guard().remove(server.pid);
      if (!this.endIsWanted) onEnd();
    });
  }

  async kill(): Promise<void> {
    const { pid } = this.started;
    this.endIsWanted = true;
    process.kill(pid, 'SIGKILL');
    const giveUpAt = performance.now() + GONE_WITHIN_MS;
    while (await inspectProcess(pid)) {
      if (performance.now() > giveUpAt) throw new Error(`The database (process ${pid}) was not gone ${GONE_WITHIN_MS} ms after SIGKILL.`);
      await pause(LOOK_INTERVAL_MS);
    }
    guard().remove(pid);
  }

  async stop(): Promise<void> {
    const { server } = this;
    if (!server) return;
    this.endIsWanted = true;
    await server.stop();
    guard().remove(server.pid);
    this.server = undefined;
  }

  private get started(): { readonly url: string; readonly pid: number } {
    if (!this.known) throw new Error('The database has not been started.');
    return this.known;
  }
}
