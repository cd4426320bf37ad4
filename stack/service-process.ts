import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { guard } from './guard.js';

/** A service as a process of its own. Its settings, its port and its name stay when it is killed. */
export interface ServiceProcess {
  /** For example `relay`. */
  readonly name: string;
  /** From 1. */
  readonly instance: number;
  /** Of the process that runs now, or of the last one. */
  readonly pid: number;
  /** Where it answers: its interface, or `/livez`, `/readyz` and `/metrics`. */
  readonly url: string;
  readonly isRunning: boolean;
  /** What it has written to standard error, all starts together. */
  readonly logFile: string;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM; SIGKILL when it takes too long, which its exit status tells. @returns exit status, null after SIGKILL or where none ran */
  stop(): Promise<number | null>;
  /** Starts it again; resolves when it is ready, rejects when it ends or is ended before. No effect while it runs. */
  start(): Promise<void>;
  /** `stop`, then `start`. */
  restart(): Promise<void>;
  /** SIGSTOP: connections stay open, and nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

export interface ServiceEnd {
  /** For example `relay-1`. */
  readonly process: string;
  /** For example `exit status 1` or `SIGKILL`. */
  readonly how: string;
  /** The end of what it wrote to standard error. */
  readonly lastWords: string;
}

export interface ServiceOptions {
  readonly name: string;
  readonly instance: number;
  /** The `main.js` of the build. */
  readonly program: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** The longest that it may take to stop by itself. */
  readonly stopTimeoutMs: number;
  /** Told of an end that nobody asked for. */
  readonly onEnd: (end: ServiceEnd) => void;
}

/** A service that ended while starting or did not become ready; the message has the end of its log. */
export class ServiceNotStarted extends Error {
  override readonly name = 'ServiceNotStarted';
}

/** Two seconds on an idle machine. Joining a consumer group behind a member that was killed takes its session (ONEFOLD_KAFKA_SESSION_TIMEOUT_MS). */
const START_TIMEOUT_MS = 120_000;
const PROBE_TIMEOUT_MS = 3_000;
const PROBE_INTERVAL_MS = 100;
const TOLD_CHARS_MAX = 3_000;

export class SpawnedService implements ServiceProcess {
  readonly name: string;
  readonly instance: number;
  readonly logFile: string;
  /** What its first line said, beside `ready`. */
  ready: Readonly<Record<string, unknown>> = {};
  private child: ChildProcess | undefined;
  /** An end while starting is told to whoever starts it. */
  private isStarting = false;
  private endIsWanted = false;

  constructor(private readonly options: ServiceOptions) {
    this.name = options.name;
    this.instance = options.instance;
    this.logFile = options.logFile;
  }

  get pid(): number {
    const pid = this.child?.pid;
    if (pid === undefined) throw new Error(`${this.title} has not been started.`);
    return pid;
  }

  get url(): string {
    return String(this.ready['url'] ?? this.ready['lab'] ?? '');
  }

  get isRunning(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  async start(): Promise<void> {
    if (this.isRunning) return;
    const giveUpAt = performance.now() + START_TIMEOUT_MS;
    this.isStarting = true;
    try {
      const child = await this.launch();
      this.ready = await this.firstLine(child, giveUpAt);
      // The lab has no probes: its first line says all.
      if (this.ready['process'] !== undefined) await this.untilReady(giveUpAt);
    } finally {
      this.isStarting = false;
    }
  }

  async kill(): Promise<void> {
    await this.end('SIGKILL');
  }

  async stop(): Promise<number | null> {
    this.resume();
    return this.end('SIGTERM');
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  pause(): void {
    if (this.isRunning) this.child?.kill('SIGSTOP');
  }

  resume(): void {
    if (this.isRunning) this.child?.kill('SIGCONT');
  }

  private get title(): string {
    return `${this.name}-${this.instance}`;
  }

  private async launch(): Promise<ChildProcess> {
    const log = await open(this.logFile, 'a', 0o600);
    try {
      // A session of its own: Ctrl-C in a terminal ends us, and we end the services in their order.
      const child = spawn(process.execPath, ['--enable-source-maps', this.options.program], {
        env: this.options.env,
        stdio: ['ignore', 'pipe', log.fd],
        detached: true,
      });
      this.child = child;
      this.endIsWanted = false;
      child.once('exit', (code, signal) => void this.ended(child.pid!, code, signal));
      await once(child, 'spawn');
      guard().add(child.pid!);
      return child;
    } finally {
      await log.close();
    }
  }

  /** Standard output is read to its end, so that a service that goes on writing there is never held up. */
  private async firstLine(child: ChildProcess, giveUpAt: number): Promise<Record<string, unknown>> {
    const lines = createInterface({ input: child.stdout! });
    const line = await new Promise<string | undefined>((resolve) => {
      const timer = setTimeout(() => resolve(undefined), giveUpAt - performance.now());
      lines.once('line', (text) => {
        clearTimeout(timer);
        resolve(text);
      });
      child.once('exit', () => {
        clearTimeout(timer);
        resolve(undefined);
      });
    });
    if (line === undefined) throw await this.notStarted();
    try {
      return JSON.parse(line) as Record<string, unknown>;
    } catch (cause) {
      await this.kill();
      throw new ServiceNotStarted(`The first line of ${basename(this.options.program)} of ${this.title} is not JSON.`, { cause });
    }
  }

  private async untilReady(giveUpAt: number): Promise<void> {
    while (performance.now() < giveUpAt && this.isRunning) {
      const answer = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }).catch(() => undefined);
      await answer?.body?.cancel();
      if (answer?.ok) return;
      await pause(PROBE_INTERVAL_MS);
    }
    throw await this.notStarted();
  }

  private async notStarted(): Promise<ServiceNotStarted> {
    const how = this.isRunning ? `was not ready within ${START_TIMEOUT_MS / 1000} s` : 'ended while starting';
    await this.kill();
    return new ServiceNotStarted(`${this.title} ${how}. The end of its log:\n${await this.lastWords()}`);
  }

  private async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    const { child } = this;
    if (!child || !this.isRunning) return null;
    this.endIsWanted = true;
    const exited = once(child, 'exit') as Promise<[number | null]>;
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), this.options.stopTimeoutMs);
    const [code] = await exited;
    clearTimeout(timer);
    return code;
  }

  private async ended(pid: number, code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    guard().remove(pid);
    if (this.endIsWanted || this.isStarting) return;
    this.options.onEnd({ process: this.title, how: signal ?? `exit status ${code}`, lastWords: await this.lastWords() });
  }

  private async lastWords(): Promise<string> {
    const text = await readFile(this.logFile, 'utf8').catch(() => '');
    return text.slice(-TOLD_CHARS_MAX);
  }
}
