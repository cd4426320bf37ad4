import { providerClasses, type LookupFault, type ProviderClass } from '#apps/provider-lab/src/provider-classes.js';
import type { HttpMode } from '#apps/provider-lab/src/modes.js';
import { LANDING_MS } from './catalogue.js';
import { Random } from './random.js';

/** How one call goes at the provider. */
export interface CallScript {
  readonly mode: HttpMode;
  /** On the way there. */
  readonly travelMs: number;
  /** Of a late landing: how long after its arrival it takes effect. */
  readonly landMs: number;
  /** Of a saved 500: whether it happened all the same. */
  readonly effect: boolean;
}

/** What is done to the system, and when: a seed is a list of these. All that goes wrong is one, so that leaving steps out shrinks a run. */
export type Step = { readonly atMs: number } & (
  | { readonly kind: 'submit'; readonly op: number; readonly variant: 'same' | 'reworded' | 'conflicting'; readonly answersLost: number }
  | { readonly kind: 'calls'; readonly op: number; readonly scripts: readonly CallScript[] }
  | { readonly kind: 'look_ups'; readonly op: number; readonly faults: readonly LookupFault[] }
  | { readonly kind: 'cancel'; readonly op: number }
  | { readonly kind: 'crash'; readonly node: number; readonly calls: number; readonly moment: 'before' | 'after'; readonly downMs: number }
  | { readonly kind: 'freeze'; readonly node: number; readonly calls: number; readonly moment: 'before' | 'after'; readonly forMs: number }
  | { readonly kind: 'storm'; readonly what: Storm; readonly share: number; readonly forMs: number }
  | { readonly kind: 'clock'; readonly offsetMs: number }
  | { readonly kind: 'rewind'; readonly records: number }
  | { readonly kind: 'rebalance'; readonly shift: number }
  | { readonly kind: 'operator'; readonly style: OperatorStyle; readonly waitMs: number }
);

/** Appends whose answer is lost, stored or not; appends that the log finds it has had; queries that fail; events that are seen late. */
export type Storm = 'append_lost' | 'append_stored_answer_lost' | 'append_twice' | 'database' | 'late_visible';
export type OperatorStyle = 'finds_out' | 'retries' | 'gives_up' | 'asks_again' | 'race';

export interface OperationPlan {
  readonly providerClass: ProviderClass;
  readonly tenant: string;
}

export interface Scenario {
  readonly seed: number;
  readonly nodes: number;
  readonly operations: readonly OperationPlan[];
  readonly steps: readonly Step[];
}

/** How long faults go on. */
export const CHAOS_MS = 80_000;
/** The database's clock is stepped to this much off the truth at most: what the margin of a key's retention has to bear, twice. */
const CLOCK_OFFSET_MAX_MS = 15_000;

const MODES: readonly HttpMode[] = [
  ...(['OK', 'OK', 'OK', 'ACCEPT_HANG', 'ACCEPT_HANG', 'ACCEPT_RESET', 'ACCEPT_504', 'SAVED_500', 'BROKEN_BODY'] as const),
  ...(['REFUSE', 'R429', 'D402', 'IN_PROGRESS', 'LATE_LANDING', 'LATE_LANDING', 'RESET_BEFORE', 'HANG'] as const),
];
const LOOK_UP_FAULTS: readonly LookupFault[] = ['none', 'none', '403', '500', 'timeout', 'two_matches', 'other_amount'];

export function scenarioOf(seed: number): Scenario {
  const random = Random.of(seed, 'scenario');
  const nodes = random.between(1, 3);
  const count = random.between(3, 9);
  const operations = Array.from({ length: count }, () => ({
    providerClass: random.pick(providerClasses),
    tenant: random.pick(['acme', 'globex']),
  }));
  const steps: Step[] = [];
  operations.forEach(({ providerClass }, op) => addOperation(steps, random, op, modesOf(providerClass)));
  addFaults(steps, random, nodes);
  for (let n = random.between(0, 10); n > 0; n--) {
    const style = random.pick(['finds_out', 'finds_out', 'retries', 'gives_up', 'asks_again', 'race'] as const);
    steps.push({ kind: 'operator', atMs: random.between(15_000, CHAOS_MS), style, waitMs: random.between(0, 40_000) });
  }
  steps.sort((one, other) => one.atMs - other.atMs);
  return { seed, nodes, operations, steps };
}

/** Class E answers 409 to what it has had; one that answered 409 for another reason as well would break what its catalogue declares. */
function modesOf(providerClass: ProviderClass): readonly HttpMode[] {
  return providerClass === 'e' ? MODES.filter((mode) => mode !== 'IN_PROGRESS') : MODES;
}

function addOperation(steps: Step[], random: Random, op: number, modes: readonly HttpMode[]): void {
  const atMs = random.between(0, CHAOS_MS / 2);
  if (random.chance(0.75))
    steps.push({ kind: 'calls', atMs: 0, op, scripts: Array.from({ length: random.between(1, 4) }, () => script(random, modes)) });
  if (random.chance(0.5)) {
    steps.push({ kind: 'look_ups', atMs: 0, op, faults: Array.from({ length: random.between(1, 6) }, () => random.pick(LOOK_UP_FAULTS)) });
  }
  steps.push({ kind: 'submit', atMs, op, variant: 'same', answersLost: random.chance(0.2) ? random.between(1, 2) : 0 });
  for (let n = random.between(0, 3); n > 0; n--) {
    const laterMs = random.chance(0.5) ? random.between(0, 20) : random.between(0, CHAOS_MS / 2);
    const variant = random.pick(['same', 'reworded', 'reworded', 'conflicting'] as const);
    steps.push({ kind: 'submit', atMs: atMs + laterMs, op, variant, answersLost: 0 });
  }
  if (random.chance(0.12)) steps.push({ kind: 'cancel', atMs: atMs + random.between(0, 300), op });
}

function script(random: Random, modes: readonly HttpMode[]): CallScript {
  const mode = random.pick(modes);
  // What is sent has landed within the time that the catalogue declares, be it late on its way or late at the provider.
  const travelMs = random.chance(0.1) && mode !== 'LATE_LANDING' ? random.between(0, LANDING_MS - 100) : random.between(0, 40);
  return { mode, travelMs, landMs: random.between(100, LANDING_MS - 200), effect: random.chance(0.5) };
}

function addFaults(steps: Step[], random: Random, nodes: number): void {
  const anywhen = () => random.between(0, CHAOS_MS);
  for (let n = random.between(0, 9); n > 0; n--) {
    const moment = random.pick(['before', 'after'] as const);
    steps.push({
      kind: 'crash',
      atMs: anywhen(),
      node: random.between(0, nodes - 1),
      calls: random.between(1, 9),
      moment,
      downMs: random.between(0, 8_000),
    });
  }
  for (let n = random.between(0, 4); n > 0; n--) {
    const moment = random.pick(['before', 'after'] as const);
    steps.push({
      kind: 'freeze',
      atMs: anywhen(),
      node: random.between(0, nodes - 1),
      calls: random.between(1, 9),
      moment,
      forMs: random.between(3_000, 40_000),
    });
  }
  for (let n = random.between(0, 5); n > 0; n--) {
    const what = random.pick(['append_lost', 'append_stored_answer_lost', 'append_twice', 'database', 'late_visible'] as const);
    steps.push({ kind: 'storm', atMs: anywhen(), what, share: random.next(), forMs: random.between(500, 15_000) });
  }
  for (let n = random.between(0, 3); n > 0; n--) {
    steps.push({ kind: 'clock', atMs: anywhen(), offsetMs: random.between(-CLOCK_OFFSET_MAX_MS, CLOCK_OFFSET_MAX_MS) });
  }
  for (let n = random.between(0, 4); n > 0; n--) steps.push({ kind: 'rewind', atMs: anywhen(), records: random.between(1, 30) });
  for (let n = random.between(0, 2); n > 0; n--) steps.push({ kind: 'rebalance', atMs: anywhen(), shift: random.between(1, 2) });
}

/** A step in words, for a trace. */
export function describeStep(step: Step): string {
  const { kind, atMs, ...rest } = step;
  const scripts =
    'scripts' in rest
      ? rest.scripts.map(({ mode, travelMs, landMs, effect }) => `${mode}(${travelMs},${landMs},${effect})`).join(' ')
      : null;
  const told = scripts === null ? rest : { ...rest, scripts };
  return `${(atMs / 1000).toFixed(3)}s ${kind} ${Object.entries(told)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ')}`;
}
