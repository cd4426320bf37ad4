import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceEnd, ServiceProcess, Stack } from '../../stack/stack.js';
import type { Random } from '../simulation/random.js';
import { FAULTS, type Fault } from './faults.js';
import type { Network } from './network.js';

/** What was done to the system, and what it did to itself. */
export interface Damage {
  /** SIGKILL, by what was killed. */
  readonly kills: Record<string, number>;
  /** SIGTERM to a service that was started again. */
  restarts: number;
  /** SIGSTOP and later SIGCONT. */
  freezes: number;
  /** Ways between two parts that were cut, silenced or slowed down. */
  partitions: number;
  sessions_ended: number;
  /** Processes that ended though nobody asked them to; each was started again, as a supervisor would. */
  readonly ended_by_themselves: string[];
}

/** Time between two faults: on two cores a service takes about a second to start, and some time should be left for work. */
const FAULT_EVERY_MS = { low: 100, high: 1_100 };
const FAULTS_AT_ONCE_MAX = 6;
/** A process that can't start while what it needs is away is started again, as a supervisor would; after this many times it never will. */
const STARTS_MAX = 60;
const START_AGAIN_MS = 1_000;

/** Breaks things at random, several at once, and puts them right again. */
export class Director {
  readonly damage: Damage = { kills: {}, restarts: 0, freezes: 0, partitions: 0, sessions_ended: 0, ended_by_themselves: [] };
  private readonly busy = new Set<string>();
  private readonly underWay = new Set<Promise<void>>();
  private readonly over = new AbortController();
  private failure: unknown;
  /** When everything was put right, by `performance.now()`; null before. */
  endedAt: number | null = null;

  constructor(
    readonly stack: Stack,
    readonly network: Network,
    readonly random: Random,
    private readonly tell: (text: string) => void,
  ) {}

  /** Breaks things until `end` is called. @throws what kept it from putting something right */
  async run(): Promise<void> {
    while (!this.over.signal.aborted && this.failure === undefined) {
      await this.wait(this.random.between(FAULT_EVERY_MS.low, FAULT_EVERY_MS.high));
      if (this.underWay.size < FAULTS_AT_ONCE_MAX && !this.over.signal.aborted) this.begin(this.draw());
    }
    await this.settled();
  }

  /** Nothing new is broken, and what is broken is put right at once. */
  end(): void {
    this.over.abort();
  }

  /** Resolves early when the run is over. */
  async wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.over.signal }).catch(() => undefined);
  }

  /** One that nothing is done to at the moment; it is nobody else's until `fault` has ended. */
  async withFree<T>(candidates: readonly T[], nameOf: (each: T) => string, fault: (each: T) => Promise<void>): Promise<void> {
    const free = candidates.filter((each) => !this.busy.has(nameOf(each)));
    if (free.length === 0) return;
    const chosen = this.random.pick(free);
    this.busy.add(nameOf(chosen));
    try {
      await fault(chosen);
    } finally {
      this.busy.delete(nameOf(chosen));
    }
  }

  killed(what: string): void {
    this.damage.kills[what] = (this.damage.kills[what] ?? 0) + 1;
  }

  /** Until it is ready. @throws where it never is */
  async startAgain(part: { start(): Promise<void> }, title: string): Promise<void> {
    for (let starts = 1; ; starts++) {
      try {
        return await part.start();
      } catch (error) {
        if (starts === STARTS_MAX) throw error;
        this.tell(`${title} could not start: ${lastLine((error as Error).message)}`);
        await delay(START_AGAIN_MS);
      }
    }
  }

  /** For the stack: a process that has ended by itself. */
  ended({ process, how, lastWords }: ServiceEnd): void {
    this.damage.ended_by_themselves.push(`${process}: ${how}`);
    this.tell(`${process} ended by itself (${how}): ${lastLine(lastWords)}`);
    const service = this.stack.services.find((each) => titleOf(each) === process);
    if (service && !this.busy.has(process)) this.follow(this.withFree([service], titleOf, (each) => this.startAgain(each, process)));
  }

  private draw(): Fault {
    const total = FAULTS.reduce((sum, { weight }) => sum + weight, 0);
    let left = this.random.next() * total;
    return FAULTS.find(({ weight }) => (left -= weight) < 0) ?? FAULTS[0]!;
  }

  private begin({ act }: Fault): void {
    this.follow(act(this));
  }

  private follow(work: Promise<void>): void {
    const followed: Promise<void> = work
      .catch((error: unknown) => void (this.failure ??= error))
      .finally(() => this.underWay.delete(followed));
    this.underWay.add(followed);
  }

  private async settled(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay);
    this.network.heal();
    // Also what has ended by itself while something else was done to it.
    await Promise.all(this.stack.services.map((service) => this.startAgain(service, titleOf(service))));
    this.endedAt = performance.now();
    if (this.failure !== undefined) throw this.failure;
  }
}

export const titleOf = ({ name, instance }: ServiceProcess) => `${name}-${instance}`;

/** The last line that is none of a stack trace. */
function lastLine(text: string): string {
  const lines = text.split('\n').filter((line) => /^\S/.test(line) && !line.startsWith('Node.js v'));
  return lines.at(-1)?.slice(0, 300) ?? '';
}
