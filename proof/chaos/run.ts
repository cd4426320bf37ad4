import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { packageRoot } from '#adapters/package-root.js';
import { openPool, type Pool } from '#adapters/postgres/database.js';
import { startStack, type Stack } from '../../stack/stack.js';
import { Random } from '../simulation/random.js';
import { Agents } from './agents.js';
import type { ChaosArguments } from './arguments.js';
import { Callers } from './callers.js';
import { Director } from './director.js';
import { gatherFacts } from './evidence.js';
import { LabClient } from './lab-client.js';
import { Network } from './network.js';
import { Operators } from './operators.js';
import { untilSettled } from './settle.js';
import { summarize, type Summary } from './summary.js';
import { VISIBILITY_LAG_MS } from './times.js';

const INSTANCES = 2;
/** The stack's own tenant. */
const TENANT = 'dev';
/** After the last fault a request that was lost is asked again until it is answered; this long means that it never will be. */
const LAST_ANSWERS_MS_MAX = 120_000;
/** The shortest there is: what a killed process held is idle for as long. */
const SESSION_TIMEOUT_MS = 6_000;

/**
 * The distributed layout under load while its parts are killed, frozen and cut off from each other; then everything is put right, and what
 * is recorded is held against the provider's own ledger.
 *
 * @param signal ends the run where it stands, without a summary
 * @throws the signal's reason; what kept the stack from starting or a part from being put right
 */
export async function runChaos(options: ChaosArguments, tell: (text: string) => void, signal: AbortSignal): Promise<Summary> {
  const network = new Network(INSTANCES);
  let director: Director | undefined;
  const stack = await startStack({
    brokers: 3,
    instances: { 'command-api': INSTANCES, relay: INSTANCES, dispatcher: INSTANCES, projector: INSTANCES },
    env: {
      all: {
        ONEFOLD_CATALOGUE: join(packageRoot, 'proof', 'chaos', 'catalogue.yaml'),
        ONEFOLD_KAFKA_SESSION_TIMEOUT_MS: String(SESSION_TIMEOUT_MS),
      },
    },
    network,
    onProgress: (text) => tell(`${text} ...`),
    onEnd: (end) => director?.ended(end),
  });
  const pool = openPool({ url: stack.database, poolSize: 4 });
  try {
    signal.throwIfAborted();
    director = new Director(stack, network, Random.of(options.seed, 'director'), tell);
    const apis = await network.toApis(stack.api);
    return await new Run(options, stack, director, pool, apis, tell).toEnd(signal);
  } finally {
    await pool.end();
    await stack.stop();
    await network.close();
  }
}

class Run {
  private readonly startedAt = performance.now();
  private readonly lab: LabClient;
  private readonly callers: Callers;
  private readonly agents: Agents;
  private readonly operators: Operators;
  private readonly giveUp = new AbortController();

  constructor(
    private readonly options: ChaosArguments,
    private readonly stack: Stack,
    private readonly director: Director,
    private readonly pool: Pool,
    apis: readonly string[],
    private readonly tell: (text: string) => void,
  ) {
    // As many callers as are under way at a time listen to it.
    setMaxListeners(0, this.giveUp.signal);
    const random = (name: string) => Random.of(options.seed, name);
    this.lab = new LabClient(stack.lab);
    this.callers = new Callers(apis, stack.key, random('callers'), this.giveUp.signal);
    this.agents = new Agents(this.callers, this.lab, random('agents'));
    this.operators = new Operators(this.callers, this.lab, pool, random('operators'), TENANT);
  }

  async toEnd(signal: AbortSignal): Promise<Summary> {
    const stop = () => {
      this.director.end();
      this.operators.end();
      this.giveUp.abort();
    };
    signal.addEventListener('abort', stop, { once: true });
    const report = setInterval(() => this.report(), 15_000);
    try {
      await this.lab.setVisibilityLag(VISIBILITY_LAG_MS);
      await this.breakThings();
      signal.throwIfAborted();
      this.tell('nothing more is broken; waiting until everything has settled ...');
      const settledAfterMs = await untilSettled(this.pool, this.lab, this.director.endedAt ?? performance.now(), this.tell);
      signal.throwIfAborted();
      return await this.judge(settledAfterMs);
    } finally {
      clearInterval(report);
      signal.removeEventListener('abort', stop);
    }
  }

  /** Agents and operators at work while things break; until all is put right again and every caller has an answer. */
  private async breakThings(): Promise<void> {
    const { operations, minutes } = this.options;
    const forMs = minutes * 60_000;
    const over = setTimeout(() => this.director.end(), forMs);
    const working = this.agents.run(operations, forMs, this.giveUp.signal);
    const deciding = this.operators.run();
    try {
      await this.director.run();
      const tooLate = setTimeout(() => this.giveUp.abort(), LAST_ANSWERS_MS_MAX);
      await working;
      this.operators.end();
      await deciding;
      clearTimeout(tooLate);
    } finally {
      clearTimeout(over);
      this.giveUp.abort();
      this.operators.end();
    }
  }

  private async judge(settledAfterMs: number | null): Promise<Summary> {
    const { stack, pool, lab, agents, operators, callers, director } = this;
    const { orders, findings } = agents;
    const { problems, failed } = callers;
    this.tell(`settled after ${settledAfterMs} ms; reading the evidence of ${orders.length} operations ...`);
    const facts = await gatherFacts({
      ...{ stack, pool, lab, tenant: TENANT, orders, problems, settledAfterMs },
      decided: operators.decided,
    });
    const seconds = Math.round((performance.now() - this.startedAt) / 1_000);
    const told = { ...director.damage, seed: this.options.seed, operations: orders.length, unanswered_requests: failed, seconds, findings };
    return summarize(facts, told, this.tell);
  }

  private report(): void {
    const { kills } = this.director.damage;
    const killed = Object.values(kills).reduce((sum, count) => sum + count, 0);
    const minutes = ((performance.now() - this.startedAt) / 60_000).toFixed(1);
    this.tell(`${minutes} min: ${this.agents.orders.length} submitted, ${this.agents.acknowledged} acknowledged, ${killed} kills`);
  }
}
