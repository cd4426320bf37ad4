import { setTimeout as delay } from 'node:timers/promises';
import type { ProviderClass } from '../faults/crash-points.js';
import type { Random } from '../simulation/random.js';
import type { Callers } from './callers.js';
import type { LabClient } from './lab-client.js';
import { LATE_LANDING_MS } from './times.js';

/** One intent, and what was heard of it. */
export interface Order {
  readonly labClass: ProviderClass;
  readonly reference: string;
  readonly amountMinor: number;
  /** Once a first answer with 200 or 202 came; later answers may name no other. */
  operationId: string | null;
  readonly otherIds: Set<string>;
  cancelled: boolean;
}

/** Stands in every payload, and may stand nowhere in the clear. */
export const ACCOUNT_CANARY = 'acc-canary-8e41f27b';

/** The class that a person would choose for money takes the most. */
const CLASSES: readonly ProviderClass[] = ['a', 'a', 'a', 'b', 'c', 'd', 'e', 'f'];
const TREATED_SHARE = 0.3;
const TREATMENTS: readonly { readonly mode: string; readonly more?: object; readonly classes?: string }[] = [
  { mode: 'ACCEPT_HANG' },
  { mode: 'ACCEPT_RESET' },
  { mode: 'ACCEPT_504' },
  { mode: 'SAVED_500' },
  { mode: 'BROKEN_BODY' },
  { mode: 'RESET_BEFORE' },
  { mode: 'R429', more: { retry_after_seconds: 1 } },
  { mode: 'D402' },
  // Only where a look-up waits for landings: a class without one has promised that an answer which is lost was no late landing.
  { mode: 'LATE_LANDING', more: { delay_ms: LATE_LANDING_MS }, classes: 'cd' },
];

/** Shares of what agents do beside submitting once. */
const SHARES = { atOnce: 0.1, again: 0.1, read: 0.1, cancel: 0.02, conflict: 0.005 };
const AGAIN_AFTER_MS = { low: 1_000, high: 40_000 };
/** Submissions are spread over this share of the time, so that the last faults meet work of every age. */
const PACE_SHARE = 0.9;
const AT_ONCE_MAX = 128;

interface Task {
  readonly atMs: number;
  readonly run: () => Promise<void>;
}

/** Agents that submit, submit again, read, cancel and contradict themselves. */
export class Agents {
  readonly orders: Order[] = [];
  /** What was answered against the rules of the API, a sentence each. */
  readonly findings: string[] = [];

  constructor(
    private readonly callers: Callers,
    private readonly lab: LabClient,
    private readonly random: Random,
  ) {}

  /** Submits `operations` over `forMs`, and resolves when every submission has its answer. What is not due by then is left out. */
  async run(operations: number, forMs: number, signal: AbortSignal): Promise<void> {
    const tasks = Array.from({ length: operations }, (_, index) => this.tasksOf(index, (index / operations) * forMs * PACE_SHARE)).flat();
    // The next one is at the end: taking a hundred thousand from the front would move all the others each time.
    tasks.sort((one, other) => other.atMs - one.atMs);
    const startedAt = performance.now();
    const work = async () => {
      for (let task = tasks.pop(); task; task = tasks.pop()) {
        const early = startedAt + task.atMs - performance.now();
        if (early > 0) await delay(early, undefined, { signal }).catch(() => undefined);
        if (signal.aborted || performance.now() - startedAt > forMs) return;
        await task.run();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE_MAX }, work));
  }

  get acknowledged(): number {
    return this.orders.filter(({ operationId }) => operationId !== null).length;
  }

  private tasksOf(index: number, atMs: number): Task[] {
    const { random } = this;
    const order: Order = {
      ...{ labClass: random.pick(CLASSES), reference: `order-${index}`, amountMinor: 100 + index },
      ...{ operationId: null, otherIds: new Set<string>(), cancelled: false },
    };
    const later = () => atMs + random.between(AGAIN_AFTER_MS.low, AGAIN_AFTER_MS.high);
    const treatment = random.chance(TREATED_SHARE)
      ? random.pick(TREATMENTS.filter(({ classes = order.labClass }) => classes.includes(order.labClass)))
      : null;
    const submissions = random.chance(SHARES.atOnce) ? 2 : 1;
    const first = async () => {
      this.orders.push(order);
      if (treatment) await this.lab.script(order.reference, treatment.mode, treatment.more);
      await Promise.all(Array.from({ length: submissions }, () => this.submit(order)));
      if (random.chance(SHARES.cancel)) await this.cancel(order);
    };
    const tasks: Task[] = [{ atMs, run: first }];
    if (random.chance(SHARES.again)) tasks.push({ atMs: later(), run: () => this.submit(order) });
    if (random.chance(SHARES.read)) tasks.push({ atMs: later(), run: () => this.read(order) });
    if (random.chance(SHARES.conflict)) tasks.push({ atMs: later(), run: () => this.contradict(order) });
    return tasks;
  }

  private async submit(order: Order): Promise<void> {
    const answer = await this.callers.ask('POST', '/v1/operations', requestOf(order));
    if (answer === null) return;
    const { status, body } = answer;
    if (status !== 200 && status !== 202) return this.find(`submitting ${order.reference} was answered ${status}`);
    order.operationId ??= body.operation_id;
    if (order.operationId !== body.operation_id) order.otherIds.add(body.operation_id);
  }

  /** Refused once anything was tried, which is as good. */
  private async cancel(order: Order): Promise<void> {
    if (order.operationId === null) return;
    const answer = await this.callers.ask('POST', `/v1/operations/${order.operationId}/cancel`, { reason: 'ordered by mistake' });
    if (answer?.status === 200) order.cancelled = true;
    else if (answer && answer.status !== 409) this.find(`cancelling ${order.reference} was answered ${answer.status}`);
  }

  private async read({ operationId, reference }: Order): Promise<void> {
    if (operationId === null) return;
    const answer = await this.callers.ask('GET', `/v1/operations/${operationId}`);
    if (answer && answer.status !== 200) this.find(`reading ${reference}, which is acknowledged, was answered ${answer.status}`);
  }

  /** The same identity with another amount: refused, whatever became of the first. Before there is a first it would become it. */
  private async contradict(order: Order): Promise<void> {
    if (order.operationId === null) return;
    const answer = await this.callers.ask('POST', '/v1/operations', requestOf({ ...order, amountMinor: order.amountMinor + 1 }));
    if (answer && answer.status !== 422) this.find(`contradicting ${order.reference} was answered ${answer.status}`);
  }

  private find(text: string): void {
    this.findings.push(text);
  }
}

function requestOf({ labClass, reference, amountMinor }: Order) {
  return {
    action_type: `lab_${labClass}.payment_order.create`,
    identity: { workflow_id: `case-${reference}`, step: 'pay', business_object: reference, revision: 1 },
    payload: { account_id: ACCOUNT_CANARY, amount_minor: amountMinor, currency: 'RUB', business_reference: reference },
  };
}
