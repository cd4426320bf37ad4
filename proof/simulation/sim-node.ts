import { nodeHashing } from '#adapters/crypto/hashing.js';
import { DUE_WORK, DueWorkProjection } from '#adapters/due-work/due-work-projection.js';
import { createLogger } from '#adapters/observability/logger.js';
import { OPERATION_VIEW, OperationProjection } from '#adapters/view/operation-projection.js';
import type { CommandApiDependencies } from '#apps/command-api/src/dependencies.js';
import { ActOnOperationCommand, ActOnOperationHandler, type Act } from '#apps/command-api/src/operations/act-on-operation.js';
import { OperationWatches } from '#apps/command-api/src/operations/operation-watches.js';
import { PlanOperationCommand, PlanOperationHandler, type PlanResult } from '#apps/command-api/src/operations/plan-operation.js';
import { readIntent } from '#apps/command-api/src/operations/plan-intent.js';
import type { Caller } from '#apps/command-api/src/http/access.js';
import { Dispatcher } from '#apps/dispatcher/src/dispatcher.js';
import { providerClasses } from '#apps/provider-lab/src/provider-classes.js';
import type { Catalogue, DataKeys, DatabaseClock, DueWork, EventLog, FeedConsumer, IdentitySecrets, Sealer } from '#domain';
import type { BusMember } from './bus.js';
import { providerName } from './catalogue.js';
import type { Parts } from './parts.js';
import type { Random } from './random.js';
import { SimLog, type StoreEnd } from './sim-log.js';
import type { SimLab } from './sim-lab.js';
import type { SimProcess } from './sim-process.js';
import { SimProvider } from './sim-provider.js';
import { poolOver, type MemoryDueWork, type MemoryViewTable, type StoreClock } from './stores.js';
import type { VirtualTime } from './virtual-time.js';

const SILENT = createLogger({ process: 'simulation', level: 'silent' });

/** What all processes share. */
export interface SharedWorld {
  readonly time: VirtualTime;
  readonly store: StoreEnd;
  readonly storeClock: StoreClock;
  readonly dueWork: MemoryDueWork;
  readonly view: MemoryViewTable;
  readonly dataKeys: DataKeys;
  readonly sealer: Sealer;
  readonly catalogue: Catalogue;
  readonly identitySecrets: IdentitySecrets;
  readonly lab: SimLab;
  readonly parts: Parts;
  readonly onFault: (text: string) => void;
}

/** As the product's clock does it. */
const CALIBRATE_EVERY_MS = 5_000;
/** The dispatcher's own poll. */
const POLL_MS = 200;
/** Nothing is due for longer than that at once: a look now and then costs little. */
const SLEEP_MAX_MS = 5_000;

/** One process of the product: command API, dispatcher and projections together, as `npm start` has them, on simulated ports. */
export class SimNode implements BusMember {
  readonly dispatcher: Dispatcher;
  readonly consumers: ReadonlyMap<string, FeedConsumer>;
  readonly readAll: EventLog['readAll'];
  private readonly clock: NodeClock;
  private readonly planner: PlanOperationHandler;
  private readonly actor: ActOnOperationHandler;
  private sleeping: { readonly untilMs: number; readonly wake: () => void } | null = null;

  constructor(
    readonly process: SimProcess,
    private readonly world: SharedWorld,
    random: Random,
  ) {
    const { store, parts, lab, catalogue, sealer, dataKeys, identitySecrets, time } = world;
    const context = { process, lab, store: store.log.inner, random };
    const log = parts.log(new SimLog(process, store), context);
    this.readAll = (after, limit) => log.readAll(after, limit);
    this.clock = new NodeClock(process, world.storeClock);
    const clock = parts.clock(this.clock, context);
    const keys: DataKeys = {
      load: (ids) => process.port(() => dataKeys.load(ids)),
      destroy: (operationId) => process.port(() => dataKeys.destroy(operationId)),
    };
    const dueWork = this.remoteDueWork();
    const newId = () => random.uuid();
    const ports = { log, clock, hashing: nodeHashing, sealer, dataKeys: keys, catalogue, newId };
    this.dispatcher = new Dispatcher({
      ...ports,
      dueWork,
      providers: new Map(
        providerClasses.map((providerClass) => {
          const provider = new SimProvider(providerClass, lab, process, time);
          return [providerName(providerClass), parts.provider(provider, context, providerClass)];
        }),
      ),
      worker: process.name,
      monotonicMs: process.monotonicMs,
      delay: process.delay,
      random: () => random.next(),
      report: {
        attempt: () => undefined,
        lookUp: () => undefined,
        fault: (what, _, error) => world.onFault(`${process.name}: ${what}: ${error.message}`),
      },
    });
    const api = { ...ports, identitySecrets, lane: this.dispatcher } as Partial<CommandApiDependencies> as CommandApiDependencies;
    this.planner = new PlanOperationHandler(api, new OperationWatches(log, SILENT));
    this.actor = new ActOnOperationHandler(api);
    const projection = new OperationProjection(
      poolOver((statement) => this.database(() => world.view.query(statement))),
      log,
    );
    const onDue = () => {
      this.dispatcher.wake();
      this.nudge(0);
    };
    this.consumers = new Map<string, FeedConsumer>([
      [DUE_WORK, new DueWorkProjection(dueWork, log, () => clock.nowMs(), onDue)],
      [OPERATION_VIEW, projection],
    ]);
  }

  start(): void {
    void this.clock.run();
    void this.work();
  }

  /** A submission, as the controller hands it on. @throws Problem, LogUnavailable */
  async plan(body: unknown, caller: Caller): Promise<PlanResult> {
    const intent = readIntent(this.world.catalogue, body, null);
    return this.planner.execute(new PlanOperationCommand(intent, caller, null, null));
  }

  act(operationId: string, act: Act, caller: Caller) {
    return this.actor.execute(new ActOnOperationCommand(operationId, act, caller, null));
  }

  /** The due work has changed: it looks again, at the latest at its next poll. */
  nudge(ms = POLL_MS): void {
    const { sleeping, world } = this;
    if (!sleeping || sleeping.untilMs <= world.time.nowMs + ms) return;
    world.time.after(ms, () => this.process.deliver(sleeping.wake));
  }

  /** The dispatcher's loop. Where nothing is due it sleeps longer than the real one, which then only finds nothing. */
  private async work(): Promise<void> {
    for (;;) {
      try {
        await this.dispatcher.runOnce();
      } catch (error) {
        this.world.onFault(`${this.process.name}: taking due work: ${(error as Error).message}`);
      }
      const dueAtMs = this.world.dueWork.nextDueAtMs() ?? Infinity;
      await this.sleep(Math.min(SLEEP_MAX_MS, Math.max(POLL_MS, dueAtMs - this.world.storeClock.nowMs())));
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        if (this.sleeping?.wake === wake) this.sleeping = null;
        resolve();
      };
      this.sleeping = { untilMs: this.world.time.nowMs + ms, wake };
      this.world.time.after(ms, () => this.process.deliver(wake));
    });
  }

  private remoteDueWork(): DueWork {
    const { dueWork } = this.world;
    return {
      take: (room, hideMs) => this.database(() => dueWork.take(room, hideMs)),
      takeOthers: (providers, rows, hideMs) => this.database(() => dueWork.takeOthers(providers, rows, hideMs)),
      set: (changes) => (changes.length === 0 ? Promise.resolve() : this.database(() => dueWork.set(changes))),
      countDue: () => this.database(() => dueWork.countDue()),
    };
  }

  private database<T>(effect: () => T | Promise<T>): Promise<T> {
    return this.process.port(() => {
      if (this.world.store.weather.strikes('database')) throw new Error('The database could not be asked.');
      return effect();
    });
  }
}

/** The database's time, asked for now and then and carried forward by the process's own counter, as PostgresClock does. */
class NodeClock implements DatabaseClock {
  private offsetMs: number;

  constructor(
    private readonly process: SimProcess,
    private readonly store: StoreClock,
  ) {
    // The first answer is waited for before a process serves anything.
    this.offsetMs = store.nowMs() - process.monotonicMs();
  }

  nowMs(): number {
    return Math.floor(this.process.monotonicMs() + this.offsetMs);
  }

  async run(): Promise<void> {
    for (;;) {
      await this.process.delay(CALIBRATE_EVERY_MS);
      const askedAt = this.process.monotonicMs();
      const now = await this.process.port(() => this.store.nowMs());
      const heardAt = this.process.monotonicMs();
      if (heardAt - askedAt <= 500) this.offsetMs = now - (askedAt + heardAt) / 2;
    }
  }
}
