import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startLab, type Lab } from '#apps/provider-lab/src/lab.js';
import type { CaseTopic } from './broker.js';
import { NoAnswer, Node, type NodeSettings } from './node.js';
import type { Crash, ProductProcess } from './product-process.js';
import { RelayProcess } from './relay-process.js';
import type { CaseDatabase, FaultServer } from './server.js';

const POLL_MS = 40;
/** What a case waits for takes seconds; this long means that it will not come. */
const WAIT_MAX_MS = 120_000;
/** What the catalogue says of class D. */
const VISIBILITY_LAG_MS = 300;

export interface LedgerEntry {
  readonly class: string;
  readonly provider_key: string | null;
  readonly business_reference: string | null;
  readonly id: string;
  readonly effect: boolean;
  readonly mode: string;
  readonly at: string;
  readonly status: number | null;
  readonly replayed: boolean;
}

export interface ReferenceLedger {
  readonly calls: number;
  readonly effects: number;
  readonly lookups: number;
  readonly entries: readonly LedgerEntry[];
}

export interface LedgerTotals {
  readonly calls: number;
  readonly effects: number;
  readonly references: number;
  readonly max_effects_per_reference: number;
  readonly max_effects_per_business_reference: number;
  readonly pending_landings: number;
}

/** One case's own database, lab and secrets, and the processes that it starts on them. */
export class World {
  private readonly processes: ProductProcess[] = [];
  private clockOffsetMs = 0;
  /** By how much the database's clock was moved at most, either way. */
  largestClockStepMs = 0;

  private constructor(
    readonly database: CaseDatabase,
    private readonly lab: Lab,
    private readonly dataDir: string,
    /** Where relays publish; null where there are none. */
    readonly topic: CaseTopic | null,
  ) {}

  static async open(server: FaultServer, topic: CaseTopic | null = null): Promise<World> {
    const database = await server.createDatabase();
    const lab = await startLab({ port: 0, smtpPort: null, ledgerFile: null });
    const world = new World(database, lab, mkdtempSync(join(tmpdir(), 'onefold-case-')), topic);
    await world.tellLab('PUT', '/lab/class/d', { visibility_lag_ms: VISIBILITY_LAG_MS });
    return world;
  }

  async start(settings: Partial<NodeSettings> = {}): Promise<Node> {
    const node = await Node.start({ databaseUrl: this.database.url, dataDir: this.dataDir, labUrl: this.lab.url, ...settings });
    this.processes.push(node);
    return node;
  }

  async startRelay(crash?: Crash): Promise<RelayProcess> {
    const relay = await RelayProcess.start({ databaseUrl: this.database.url, topic: this.topic!, ...(crash && { crash }) });
    this.processes.push(relay);
    return relay;
  }

  /** Whether every reader of the log has come to its end: the due work, the status view, and the relays, which share one checkpoint. */
  feedsAreThrough(): Promise<boolean> {
    return this.database.feedsAreThrough(this.topic ? 3 : 2);
  }

  /** The database's clock is stepped by this much, forward or (below 0) back. */
  async passTime(ms: number): Promise<void> {
    this.clockOffsetMs += ms;
    this.largestClockStepMs = Math.max(this.largestClockStepMs, Math.abs(this.clockOffsetMs));
    await this.database.moveClock(this.clockOffsetMs);
  }

  async script(match: object, mode: string, more: object = {}): Promise<void> {
    await this.tellLab('PUT', '/lab/script', { match, mode, ...more });
  }

  async ledger(reference: string): Promise<ReferenceLedger> {
    return (await this.tellLab('GET', `/lab/ledger?reference=${encodeURIComponent(reference)}`)) as ReferenceLedger;
  }

  async totals(): Promise<LedgerTotals> {
    return (await this.tellLab('GET', '/lab/ledger')) as LedgerTotals;
  }

  /** What each process wrote so far. */
  logs(): string[] {
    return this.processes.map((each) => each.log());
  }

  async close(): Promise<void> {
    await Promise.all(
      this.processes.map((each) => {
        each.signal('SIGCONT');
        return each.kill();
      }),
    );
    await this.lab.close();
    await this.database.drop();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  private async tellLab(method: string, path: string, body?: object): Promise<unknown> {
    const answer = await fetch(`${this.lab.url}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    if (!answer.ok) throw new Error(`The lab refused ${method} ${path}: ${await answer.text()}`);
    return answer.json();
  }
}

/** Asks until the answer is not null. @throws when it does not come in time */
export async function eventually<T>(what: string, ask: () => Promise<T | null> | T | null, maxMs = WAIT_MAX_MS): Promise<T> {
  const giveUpAt = performance.now() + maxMs;
  for (;;) {
    const answer = await answerOf(ask);
    if (answer !== null) return answer;
    if (performance.now() >= giveUpAt) throw new NeverCame(`${what} did not come within ${maxMs} ms.`);
    await delay(POLL_MS);
  }
}

/** A process that can't answer now is asked again. */
async function answerOf<T>(ask: () => Promise<T | null> | T | null): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof NoAnswer) return null;
    throw error;
  }
}

export class NeverCame extends Error {
  override readonly name = 'NeverCame';
}
