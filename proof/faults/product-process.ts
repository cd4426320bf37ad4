import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '#adapters/package-root.js';

/** A process that neither starts nor says why is a finding; on a machine that does much else at once starting may take a minute. */
const START_MAX_MS = 180_000;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Where a process is to kill itself. */
export interface Crash {
  readonly point: string;
  readonly occurrence: number;
}

export interface Launched {
  readonly child: ChildProcess;
  /** What it writes to standard error, as it comes. */
  readonly output: string[];
  /** The line in which it said that it is ready. */
  readonly ready: unknown;
}

/**
 * Starts a program of this folder and waits until it says that it is ready.
 * @param program its name, without the ending
 * @throws DiedAtStart
 */
export async function launch(program: string, env: Readonly<Record<string, string>>, crash: Crash | undefined): Promise<Launched> {
  const child = spawn(process.execPath, [join(packageRoot, 'dist/proof/faults', `${program}.js`)], {
    env: {
      ...withoutOurs(process.env),
      ...{ PORT: '0', ONEFOLD_LOG_LEVEL: 'error' },
      ...(crash && { CRASH_POINT: crash.point, CRASH_OCCURRENCE: String(crash.occurrence) }),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const ready = await new Promise<unknown>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`The process was not ready within ${START_MAX_MS} ms:\n${output.join('')}`));
    }, START_MAX_MS);
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith('{"ready"')) return;
      clearTimeout(timer);
      resolve(JSON.parse(line));
    });
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      reject(new DiedAtStart(`The process ended with ${code ?? signal} before it was ready:\n${output.join('')}`, output.join('')));
    });
  });
  return { child, output, ready };
}

/** One process of the product, with its ports wrapped. */
export class ProductProcess {
  readonly exited: Promise<Exit>;
  private exit: Exit | null = null;
  private readonly child: ChildProcess;
  private readonly output: readonly string[];

  protected constructor({ child, output }: Launched) {
    this.child = child;
    this.output = output;
    this.exited = whenExited(child);
    void this.exited.then((exit) => (this.exit = exit));
  }

  get isOver(): boolean {
    return this.exit !== null;
  }

  /** Whether it killed itself at the point it was told. */
  diedAt(point: string): boolean {
    return this.exit?.signal === 'SIGKILL' && reportsCrash(this.output.join(''), point);
  }

  log(): string {
    return this.output.join('');
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  /** SIGTERM; resolves with its exit. */
  async stop(): Promise<Exit> {
    this.child.kill('SIGTERM');
    return this.exited;
  }
}

export class DiedAtStart extends Error {
  override readonly name = 'DiedAtStart';

  constructor(
    message: string,
    readonly output: string,
  ) {
    super(message);
  }
}

export function reportsCrash(output: string, point: string): boolean {
  return output.includes(`crash point ${point} reached\n`);
}

function whenExited(child: ChildProcess): Promise<Exit> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve({ code: child.exitCode, signal: child.signalCode });
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
}

/** Settings of whoever runs the cases must not reach the processes under test. */
function withoutOurs(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ours = /^(ONEFOLD_|LAB_|KAFKA_|EVENT|FEED$|SMTP_URL|PORT$|HOST$|DATABASE_URL|CRASH_|RELAY_)/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ours.test(name)));
}
