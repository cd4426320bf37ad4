import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { packageRoot } from '#adapters/package-root.js';
import { runProgram } from '#adapters/postgres/embedded/run-program.js';
import { guard } from '../guard.js';
import { javaProgram } from './broker-files.js';
import { askMetadata } from './probe.js';
import { brokerSettings, type NodePorts } from './settings.js';

/** One broker of a cluster. Its port and its data stay when it is killed. */
export interface KafkaNode {
  /** From 1. */
  readonly id: number;
  readonly port: number;
  /** Of the process that runs now, or of the last one. */
  readonly pid: number;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM, with which the broker hands its partitions on; SIGKILL when it takes longer than 20 s. */
  stop(): Promise<void>;
  /** Starts it again on its port and data; resolves when it takes part in the cluster. No effect while it runs. */
  start(): Promise<void>;
  /** SIGSTOP: connections stay open, and nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

export interface NodeEnd {
  readonly id: number;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A broker that did not start or does not answer; the message has the end of its log. */
export class KafkaStartFailed extends Error {
  override readonly name = 'KafkaStartFailed';
}

export interface NodeOptions {
  readonly id: number;
  readonly ports: readonly NodePorts[];
  readonly routeBetween: string | null;
  /** Of this node alone: `server.properties`, `data/`, `broker.log`. */
  readonly folder: string;
  readonly libs: string;
  readonly clusterId: string;
  /** Told of an end that nobody asked for. */
  readonly onExit: (end: NodeEnd) => void;
}

/**
 * A broker lives in some 100 MB of heap and is up in a few seconds: a machine with two cores runs three of them beside everything else. The
 * bound is far above that, since a burst of start-up has been seen to end a broker at 320 MB.
 */
const JVM = ['-Xms128m', '-Xmx640m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:+ExitOnOutOfMemoryError'];
const LOGGING = join(packageRoot, 'stack', 'kafka', 'log4j2.properties');
/** A few seconds when the machine is idle. */
const FORMAT_TIMEOUT_MS = 90_000;
/** One node answers after 3 s, three after 12 s; under load and after a recovery of logs several times that. */
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 20_000;
const PROBE_TIMEOUT_MS = 3_000;
const PROBE_INTERVAL_MS = 100;
const TOLD_CHARS_MAX = 3_000;

export class BrokerNode implements KafkaNode {
  readonly id: number;
  readonly port: number;
  private child: ChildProcess | undefined;
  /** An end while starting is told to whoever starts it. */
  private isStarting = false;
  private endIsWanted = false;

  constructor(private readonly options: NodeOptions) {
    this.id = options.id;
    this.port = options.ports[options.id - 1]!.broker;
  }

  get pid(): number {
    const pid = this.child?.pid;
    if (pid === undefined) throw new Error(`Broker ${this.id} has not been started.`);
    return pid;
  }

  get isRunning(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  async start(): Promise<void> {
    await this.launch();
    await this.untilItTakesPart();
  }

  /** Starts the process and waits for nothing: the first of three controllers would wait for the second. */
  async launch(): Promise<void> {
    if (this.isRunning) return;
    const { folder, ports, routeBetween } = this.options;
    await mkdir(folder, { recursive: true });
    await writeFile(this.settingsFile, brokerSettings({ id: this.id, ports, logFolder: this.dataFolder, routeBetween }));
    await this.format();
    const log = await open(this.logFile, 'a');
    try {
      const args = [...this.java(), ...JVM, 'kafka.Kafka', this.settingsFile];
      // A session of its own: Ctrl-C in a terminal ends us, and we end the brokers.
      const child = spawn(javaProgram(), args, { cwd: folder, detached: true, stdio: ['ignore', log.fd, log.fd] });
      this.child = child;
      this.endIsWanted = false;
      this.isStarting = true;
      child.once('exit', (code, signal) => this.ended(child.pid!, code, signal));
      await once(child, 'spawn');
      guard().add(child.pid!);
    } finally {
      await log.close();
    }
  }

  /** Until this broker itself lists itself among those that take part, and knows a controller. */
  async untilItTakesPart(): Promise<void> {
    try {
      await this.askUntilItTakesPart();
    } finally {
      this.isStarting = false;
    }
  }

  private async askUntilItTakesPart(): Promise<void> {
    const giveUpAt = performance.now() + START_TIMEOUT_MS;
    while (performance.now() < giveUpAt) {
      if (!this.isRunning) throw await this.failed('ended while starting');
      const view = await askMetadata(this.port, PROBE_TIMEOUT_MS).catch(() => undefined);
      if (view && view.controllerId >= 0 && view.brokers.some(({ id }) => id === this.id)) return;
      await pause(PROBE_INTERVAL_MS);
    }
    await this.kill();
    throw await this.failed(`did not take part in its cluster within ${START_TIMEOUT_MS / 1000} s`);
  }

  async kill(): Promise<void> {
    await this.end('SIGKILL', STOP_TIMEOUT_MS);
  }

  async stop(): Promise<void> {
    this.resume();
    await this.end('SIGTERM', STOP_TIMEOUT_MS);
  }

  pause(): void {
    if (this.isRunning) this.child?.kill('SIGSTOP');
  }

  resume(): void {
    if (this.isRunning) this.child?.kill('SIGCONT');
  }

  private async end(signal: 'SIGTERM' | 'SIGKILL', graceMs: number): Promise<void> {
    const { child } = this;
    if (!child || !this.isRunning) return;
    this.endIsWanted = true;
    const exited = once(child, 'exit');
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    await exited;
    clearTimeout(timer);
  }

  private ended(pid: number, code: number | null, signal: NodeJS.Signals | null): void {
    guard().remove(pid);
    if (!this.endIsWanted && !this.isStarting) this.options.onExit({ id: this.id, code, signal });
  }

  /** Whole or not at all: the file that counts is written last, and what a killed format has left is removed. */
  private async format(): Promise<void> {
    if (existsSync(join(this.dataFolder, 'meta.properties'))) return;
    await rm(this.dataFolder, { recursive: true, force: true });
    const args = [...this.java(), 'kafka.tools.StorageTool', 'format', '-t', this.options.clusterId, '-c', this.settingsFile];
    const { code, output } = await runProgram({ file: javaProgram(), args, options: {} }, { timeoutMs: FORMAT_TIMEOUT_MS });
    if (code !== 0) throw new KafkaStartFailed(`Broker ${this.id} could not make its data folder: ${output.slice(-TOLD_CHARS_MAX)}`);
  }

  private async failed(how: string): Promise<KafkaStartFailed> {
    const log = await readFile(this.logFile, 'utf8').catch(() => '');
    return new KafkaStartFailed(`Broker ${this.id} on port ${this.port} ${how}. The end of its log:\n${log.slice(-TOLD_CHARS_MAX)}`);
  }

  private java(): string[] {
    return ['-cp', join(this.options.libs, '*'), `-Dlog4j2.configurationFile=${LOGGING}`];
  }

  private get dataFolder(): string {
    return join(this.options.folder, 'data');
  }

  private get settingsFile(): string {
    return join(this.options.folder, 'server.properties');
  }

  private get logFile(): string {
    return join(this.options.folder, 'broker.log');
  }
}
