import fc, { type Arbitrary } from 'fast-check';
import {
  decide,
  foldDecided,
  initialState,
  nextStep,
  type AttemptOutcome,
  type KnownOperation,
  type OperationCommand,
  type OperationEvent,
} from '#domain';
import { T0 } from '../../../support/decider-specification.js';
import { decideReview, plan } from './commands.js';
import { CALL_FAULTS, ModelProvider, type CallFault } from './model-provider.js';
import { HOUR, LANDING_MS, LEASE_MS, MINUTE, policies, type ProviderClass, SECOND } from './policies.js';

/** How one round goes; rounds beyond the script go well. */
export interface Round {
  readonly fault: CallFault;
  readonly delayMs: number;
  /** What becomes of the worker: it reports, dies before it sends or after it, or reports when its lease is long over. */
  readonly worker: 'reports' | 'dies_before' | 'dies_after' | 'reports_late';
  readonly lookup: 'answers' | 'fails';
  /** Nobody is at work for so long before the round. */
  readonly pauseMs: number;
  readonly person: 'waits' | 'finds_out' | 'retries' | 'asks_again';
  readonly jitter: number;
}

export const anyScript: Arbitrary<Round[]> = fc.array(
  fc.record({
    fault: fc.constantFrom(...CALL_FAULTS),
    delayMs: fc.integer({ min: 0, max: LANDING_MS }),
    worker: fc.oneof(
      { weight: 5, arbitrary: fc.constant('reports' as const) },
      fc.constantFrom('dies_before' as const, 'dies_after' as const, 'reports_late' as const),
    ),
    lookup: fc.constantFrom('answers' as const, 'fails' as const),
    pauseMs: fc.oneof(
      { weight: 5, arbitrary: fc.constant(0) },
      fc.integer({ min: 0, max: 2 * MINUTE }),
      fc.integer({ min: 0, max: 30 * HOUR }),
    ),
    person: fc.constantFrom('waits' as const, 'finds_out' as const, 'retries' as const, 'asks_again' as const),
    jitter: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  }),
  { maxLength: 14, size: 'max' },
);

const ALL_GOES_WELL: Round = { fault: 'none', delayMs: 0, worker: 'reports', lookup: 'answers', pauseMs: 0, person: 'waits', jitter: 0.5 };
/** A call's time-out and a look-up's, well inside the lease. */
const CALL_MS = 2 * SECOND;
/** More than any policy here can make of its attempts, its look-ups and the person's. */
const STEPS_MAX = 400;

export interface SimulatedRun {
  readonly state: KnownOperation;
  readonly effects: number;
  readonly events: readonly OperationEvent[];
  readonly steps: number;
}

/** One operation from its plan to where nothing more happens by itself: nextStep, the call, decide, again and again. */
export function simulate(providerClass: ProviderClass, script: readonly Round[]): SimulatedRun {
  return new Simulation(providerClass, script).run();
}

class Simulation {
  private readonly provider: ModelProvider;
  private readonly lateReports: { atMs: number; command: OperationCommand }[] = [];
  private readonly events: OperationEvent[] = [];
  private state = initialState as KnownOperation;
  private nowMs = T0;
  private doubt: { attempt: number; knownAtMs: number } | null = null;
  private rounds = 0;

  constructor(
    private readonly providerClass: ProviderClass,
    private readonly script: readonly Round[],
  ) {
    this.provider = new ModelProvider(providerClass);
  }

  run(): SimulatedRun {
    this.decide(plan(policies[this.providerClass]));
    let steps = 0;
    do {
      while (steps++ < STEPS_MAX && this.step());
      // What is still under way lands, and what is still to be reported is; that may leave something to do.
      this.passTime(HOUR);
    } while (steps < STEPS_MAX && nextStep(this.state, this.nowMs).step !== 'none');
    return { state: this.state, effects: this.provider.effects.length, events: this.events, steps };
  }

  /** One look at the operation; false once nothing more will happen by itself. */
  private step(): boolean {
    const next = nextStep(this.state, this.nowMs);
    switch (next.step) {
      case 'none':
        return this.state.review !== null && this.state.status === 'unknown' ? this.review(this.round()) : false;
      case 'wait':
        this.passTime(next.untilMs - this.nowMs);
        return true;
      case 'record':
        this.decide({ type: 'Conclude' });
        return true;
      case 'start_attempt':
        this.attempt(this.round());
        return true;
      case 'look_up':
        this.lookUp(this.round());
        return true;
    }
  }

  private attempt({ fault, delayMs, worker, jitter, pauseMs }: Round): void {
    this.passTime(pauseMs);
    this.decide({ type: 'StartAttempt', attemptId: `a-${this.rounds}`, worker: 'w0' });
    // The pause may have changed what is to be done.
    if (this.state.status !== 'executing') return;
    const attempt = this.state.history.count;
    if (worker === 'dies_before') return;
    const outcome: AttemptOutcome = this.provider.call(this.nowMs, fault, delayMs);
    this.passTime(CALL_MS);
    const command: OperationCommand = { type: 'RecordOutcome', attempt, outcome, jitter };
    if (worker === 'reports') this.decide(command);
    if (worker === 'reports_late') this.lateReports.push({ atMs: this.nowMs + LEASE_MS + delayMs, command });
  }

  private lookUp({ lookup, jitter, pauseMs }: Round): void {
    this.passTime(pauseMs);
    const askedAtMs = this.nowMs;
    const failed = { verdict: 'inconclusive', code: 'http_500', anomaly: null, providerOperationId: null, result: null } as const;
    const check = lookup === 'answers' ? this.provider.lookUp(askedAtMs) : failed;
    this.passTime(CALL_MS);
    this.decide({ type: 'RecordCheck', askedAtMs, doubtAgeMs: this.doubtAgeMs(askedAtMs), check, jitter });
  }

  /** As a dispatcher keeps it: from the first look-up of an attempt's doubt. */
  private doubtAgeMs(nowMs: number): number {
    const attempt = this.state.history.count;
    if (this.doubt?.attempt !== attempt) this.doubt = { attempt, knownAtMs: nowMs };
    return nowMs - this.doubt.knownAtMs;
  }

  private review({ person }: Round): boolean {
    if (person === 'waits') return false;
    if (person === 'asks_again') {
      this.decide({ type: 'RequestCheck', reason: null });
      return nextStep(this.state, this.nowMs).step !== 'none';
    }
    // Somebody who finds out takes longer than a request does to land.
    if (person === 'finds_out') this.passTime(HOUR);
    const found = this.provider.effects.length > 0 ? 'happened' : 'did_not_happen';
    const decision = person === 'retries' ? 'retry_once' : found;
    const revision = this.state.revision;
    this.decide(decideReview({ decision, decisionId: `d-${this.rounds}`, expectedRevision: revision }));
    return this.state.revision > revision;
  }

  private round(): Round {
    return this.script[this.rounds++] ?? ALL_GOES_WELL;
  }

  private passTime(ms: number): void {
    const untilMs = this.nowMs + ms;
    const due = this.lateReports.filter(({ atMs }) => atMs <= untilMs).sort((one, other) => one.atMs - other.atMs);
    this.lateReports.splice(0, Infinity, ...this.lateReports.filter(({ atMs }) => atMs > untilMs));
    for (const { atMs, command } of due) {
      this.nowMs = Math.max(this.nowMs, atMs);
      this.provider.passTo(this.nowMs);
      this.decide(command);
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
    this.provider.passTo(this.nowMs);
  }

  private decide(command: OperationCommand): void {
    const decision = decide(this.state, command, this.nowMs);
    if (decision.refusal) return;
    this.events.push(...decision.events);
    this.state = foldDecided(this.state, decision.events, this.nowMs, 't1') as KnownOperation;
  }
}
