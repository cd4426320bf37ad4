import { createSealer } from '#adapters/crypto/sealer.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { DUE_WORK, DueWorkProjection } from '#adapters/due-work/due-work-projection.js';
import { MemoryDataKeys, MemoryEventLog } from '#adapters/event-store/memory/memory-event-log.js';
import { OPERATION_VIEW, OperationProjection } from '#adapters/view/operation-projection.js';
import type { RecordedEvent } from '#domain';
import { checkInvariants, type AcknowledgedCommand, type CheckReport, type Facts } from '../checker/check-invariants.js';
import { describeEvent } from '../checker/world.js';
import { Bus } from './bus.js';
import { catalogueOf, LANDING_MS } from './catalogue.js';
import { Clients } from './clients.js';
import { SOUND_PARTS, type Parts } from './parts.js';
import { Random } from './random.js';
import { CHAOS_MS, describeStep, type Scenario, type Step } from './scenario.js';
import { SimLab } from './sim-lab.js';
import { Weather } from './sim-log.js';
import { SimNode, type SharedWorld } from './sim-node.js';
import { SimProcess } from './sim-process.js';
import { MemoryDueWork, MemoryViewTable, poolOver, StoreClock, VisibleLog } from './stores.js';
import { VirtualTime } from './virtual-time.js';

/** Any moment will do; a round one reads well in a trace. */
const START_MS = Date.parse('2026-01-05T10:00:00.000Z');
/** Several times what the policies can make of their look-ups and attempts. */
const QUIET_MAX_MS = 20 * 60_000;
const SETTLED_LOOK_MS = 500;
/** A member that says nothing for so long has lost its tasks. */
const SESSION_MS = 2_000;
/** Stepped clocks (30 s from one to the other), a landing, and what a message may take. */
const SKEW_MS = 30_000 + LANDING_MS + 4_000;

export interface RunResult {
  readonly scenario: Scenario;
  readonly report: CheckReport;
  readonly facts: Facts;
  readonly operations: number;
  readonly effects: number;
  readonly duplicates: number;
  readonly lost: number;
  /** What happened, in order; equal for equal seeds. */
  readonly trace: readonly string[];
}

/** Runs a scenario to its end and holds the invariants against what is left. */
export async function simulate(scenario: Scenario, parts: Parts = SOUND_PARTS): Promise<RunResult> {
  return new Simulation(scenario, parts).run();
}

class Simulation {
  private readonly time = new VirtualTime(START_MS);
  private readonly lab = new SimLab(this.time);
  private readonly weather: Weather;
  private readonly world: SharedWorld;
  private readonly bus: Bus;
  private readonly nodes: SimNode[] = [];
  private readonly incarnations: number[] = [];
  private readonly trace: string[] = [];
  private readonly captured: string[] = [];
  private readonly clients: Clients;
  private readonly dataKeys: MemoryDataKeys;
  private lastPosition = 0n;
  private shift = 0;
  private isCalm = false;

  constructor(
    private readonly scenario: Scenario,
    parts: Parts,
  ) {
    const { seed } = scenario;
    this.weather = new Weather(Random.of(seed, 'weather'));
    const sealer = createSealer([{ version: 'm1', key: new Uint8Array(32).fill(7) }]);
    this.dataKeys = new MemoryDataKeys(sealer);
    const log = new VisibleLog(new MemoryEventLog(nodeHashing, this.dataKeys), () => this.time.nowMs);
    const storeClock = new StoreClock(() => this.time.nowMs);
    const dueWork = new MemoryDueWork(() => storeClock.nowMs());
    dueWork.onSet = () => this.nodes.forEach((node) => node.nudge());
    this.bus = new Bus(this.time, Random.of(seed, 'bus'), [DUE_WORK, OPERATION_VIEW], parts.delivery, (after) => this.lastPosition > after);
    this.world = {
      time: this.time,
      store: { log, weather: this.weather, random: Random.of(seed, 'store'), tail: parts.tail, onStored: (events) => this.stored(events) },
      storeClock,
      dueWork,
      view: parts.viewTable(),
      dataKeys: this.dataKeys,
      sealer,
      catalogue: catalogueOf(parts.policies),
      identitySecrets: [{ version: 'v1', secret: 'a secret of the simulation' }],
      lab: this.lab,
      parts,
      onFault: (text) => this.captured.push(text),
    };
    this.clients = new Clients(scenario, this.world, Random.of(seed, 'clients'), () => this.living());
  }

  async run(): Promise<RunResult> {
    for (let index = 0; index < this.scenario.nodes; index++) this.startNode(index);
    for (const step of this.scenario.steps) this.time.at(START_MS + step.atMs, () => this.take(step));
    await this.time.run(START_MS + CHAOS_MS);
    this.calm();
    const calmAtMs = this.time.nowMs;
    let isSettled = false;
    // A glance that finds nothing to do may fall between two steps; two in a row, with every poll in between, may not.
    for (let glances = 0; glances < 2 && this.time.nowMs < calmAtMs + QUIET_MAX_MS;) {
      await this.time.run(this.time.nowMs + SETTLED_LOOK_MS);
      glances = this.isSettled() ? glances + 1 : 0;
      isSettled = glances === 2;
    }
    return this.result(isSettled ? this.time.nowMs - calmAtMs : null);
  }

  private take(step: Step): void {
    this.note(describeStep(step));
    switch (step.kind) {
      case 'calls':
        return this.lab.script(this.clients.referenceOf(step.op), step.scripts);
      case 'look_ups':
        return this.lab.scriptLookUps(this.clients.referenceOf(step.op), step.faults);
      case 'submit':
      case 'cancel':
      case 'operator':
        return this.clients.begin(step);
      case 'crash':
        return this.nodes[step.node]!.process.ambush({ ...step, act: () => this.crash(step.node, step.downMs) });
      case 'freeze':
        return this.nodes[step.node]!.process.ambush({ ...step, act: () => this.freeze(step.node, step.forMs) });
      case 'storm':
        this.weather.begin(step.what, step.share);
        this.time.after(step.forMs, () => this.weather.end(step.what));
        return;
      case 'clock':
        this.world.storeClock.offsetMs = step.offsetMs;
        return;
      case 'rewind':
        return this.bus.rewind(step.records);
      case 'rebalance':
        this.shift += step.shift;
        return this.rebalance();
    }
  }

  private startNode(index: number): void {
    const incarnation = (this.incarnations[index] ?? 0) + 1;
    this.incarnations[index] = incarnation;
    const name = `node-${index}.${incarnation}`;
    const process = new SimProcess(name, this.time, Random.of(this.scenario.seed, `${name} network`));
    this.nodes[index] = new SimNode(process, this.world, Random.of(this.scenario.seed, name));
    this.nodes[index].start();
    this.rebalance();
  }

  private crash(index: number, downMs: number): void {
    const { process } = this.nodes[index]!;
    if (this.isCalm || !process.alive) return;
    this.note(`${process.name} dies`);
    process.kill();
    this.time.after(SESSION_MS, () => this.rebalance());
    this.time.after(downMs, () => {
      if (!this.nodes[index]!.process.alive) this.startNode(index);
    });
  }

  private freeze(index: number, forMs: number): void {
    const { process } = this.nodes[index]!;
    if (this.isCalm || !process.alive || process.frozen) return;
    this.note(`${process.name} stands still`);
    process.freeze();
    this.time.after(SESSION_MS, () => this.rebalance());
    this.time.after(forMs, () => this.thaw(process));
  }

  private thaw(process: SimProcess): void {
    if (!process.frozen || !process.alive) return;
    this.note(`${process.name} goes on`);
    process.thaw();
    this.rebalance();
  }

  /** All faults end; what is down comes back. */
  private calm(): void {
    this.isCalm = true;
    this.note('calm');
    this.weather.calm();
    this.lab.calm();
    this.nodes.forEach(({ process }, index) => {
      this.thaw(process);
      if (!process.alive) this.startNode(index);
    });
    this.rebalance();
  }

  private living(): readonly SimNode[] {
    return this.nodes.filter(({ process }) => process.alive);
  }

  private rebalance(): void {
    this.bus.rebalance(
      this.living().filter(({ process }) => !process.frozen),
      this.shift,
    );
  }

  private isSettled(): boolean {
    return this.clients.areDone && this.bus.isIdle && this.lab.isQuiet && this.world.dueWork.nextDueAtMs() === null;
  }

  private stored(events: readonly RecordedEvent[]): void {
    this.lastPosition = events.at(-1)!.position;
    for (const event of events) {
      if (event.event.type === 'ReviewRequested') this.clients.reviewSeen(event.stream);
      this.note(`${this.clients.labelOf(event.stream)} ${describeEvent(event)}`);
    }
    this.bus.poke();
  }

  private note(what: string): void {
    this.trace.push(`${((this.time.nowMs - START_MS) / 1000).toFixed(3)} ${what}`);
  }

  private async result(settledAfterMs: number | null): Promise<RunResult> {
    const facts = await this.facts(settledAfterMs);
    const report = checkInvariants(facts);
    const effects = facts.ledger!.filter(({ effect }) => effect).length;
    const broken = (id: string) =>
      new Set(report.violations.filter(({ invariant }) => invariant === id).map(({ operationId }) => operationId)).size;
    const { scenario, trace } = this;
    const operations = new Set(facts.log!.map(({ stream }) => stream)).size;
    return { scenario, report, facts, operations, effects, duplicates: broken('I1'), lost: broken('I2') + broken('I3'), trace };
  }

  private async facts(settledAfterMs: number | null): Promise<Facts> {
    const log = await this.world.store.log.inner.readAll(0n, Number.MAX_SAFE_INTEGER);
    const { calls } = this.lab;
    const lookUpsBefore = this.lab.lookUps;
    const rebuiltView = await this.rebuild(log);
    return {
      ledger: calls,
      log,
      view: this.world.view.facts(),
      rebuiltView,
      topic: this.bus.topicFacts(),
      acknowledged: this.clients.acknowledged as readonly AcknowledgedCommand[],
      subscribers: this.bus.subscriberFacts(),
      captured: this.captured.map((text) => ({ source: 'a report of a fault', text })),
      canaries: this.clients.canaries,
      answers: this.clients.answers,
      tenantMarks: this.clients.tenantMarks,
      replay: { calls: this.lab.calls.length - calls.length, lookUps: this.lab.lookUps - lookUpsBefore, webhooks: 0 },
      progress: { settledAfterMs, boundMs: QUIET_MAX_MS, watchdogAlarms: 0 },
      // What never settled is at rest all the same: nothing more would ever come of it.
      quiescent: true,
      skewMs: SKEW_MS,
    };
  }

  /** The view from zero, and every event once more through a projection of due work. */
  private async rebuild(log: readonly RecordedEvent[]) {
    const table = new MemoryViewTable();
    const { inner } = this.world.store.log;
    if (log.length > 0) {
      await new OperationProjection(
        poolOver(async (statement) => table.query(statement)),
        inner,
      ).handle(log);
      const nowMs = () => this.world.storeClock.nowMs();
      await new DueWorkProjection(new MemoryDueWork(nowMs), inner, nowMs, () => undefined).handle(log);
    }
    return table.facts();
  }
}
