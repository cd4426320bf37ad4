import type { ProviderClass } from '#apps/provider-lab/src/provider-classes.js';
import type { DatabaseClock, EventLog, OperationPolicy, ProviderAdapter } from '#domain';
import { handleThenCommit, type Delivery } from './bus.js';
import { POLICIES } from './catalogue.js';
import type { Random } from './random.js';
import type { SimLab } from './sim-lab.js';
import type { SimProcess } from './sim-process.js';
import { honestTail, MemoryViewTable, type Tail } from './stores.js';

/** Where a part stands: in which process, beside which lab. */
export interface PartContext {
  readonly process: SimProcess;
  readonly lab: SimLab;
  /** The log of all processes, past the network of this one. */
  readonly store: EventLog;
  readonly random: Random;
}

/**
 * What a simulated system is put together from, where something may stand in for it. The product is what stands here; a sabotaged system
 * exchanges one of them.
 */
export interface Parts {
  readonly policies: Readonly<Record<ProviderClass, OperationPolicy>>;
  readonly tail: Tail;
  readonly delivery: Delivery;
  readonly viewTable: () => MemoryViewTable;
  readonly log: (log: EventLog, context: PartContext) => EventLog;
  readonly clock: (clock: DatabaseClock, context: PartContext) => DatabaseClock;
  readonly provider: (provider: ProviderAdapter, context: PartContext, providerClass: ProviderClass) => ProviderAdapter;
}

export const SOUND_PARTS: Parts = {
  policies: POLICIES,
  tail: honestTail,
  delivery: handleThenCommit,
  viewTable: () => new MemoryViewTable(),
  log: (log) => log,
  clock: (clock) => clock,
  provider: (provider) => provider,
};
