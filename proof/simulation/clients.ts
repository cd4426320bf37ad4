import { nodeHashing } from '#adapters/crypto/hashing.js';
import type { Caller } from '#apps/command-api/src/http/access.js';
import { deriveIdentity, payloadHash, streamOf, type KnownOperation, type ReviewDecision } from '#domain';
import type { AcknowledgedCommand, CapturedAnswer } from '../checker/check-invariants.js';
import { operationIdOf } from '../checker/world.js';
import { actionName, LANDING_MS, LEASE_MS } from './catalogue.js';
import type { Random } from './random.js';
import type { Scenario, Step } from './scenario.js';
import type { SharedWorld, SimNode } from './sim-node.js';

/** A client hears nothing for so long and asks again. */
const CLIENT_TIMEOUT_MS = 3_000;
/** Each try is answered in seconds once the faults are over. */
const TRIES_MAX = 200;
/** Somebody who finds out what happened waits until whatever could still be sent has been, and has landed; clocks may be stepped by 30 s. */
const FINDING_OUT_MS = 30_000 + LEASE_MS + LANDING_MS;

type ClientStep = Extract<Step, { readonly kind: 'submit' | 'cancel' | 'operator' }>;
type Submission = Extract<Step, { readonly kind: 'submit' }>;

/** The people and programs outside: they submit, ask again, cancel and decide. None of them dies with a process of ours. */
export class Clients {
  readonly acknowledged: AcknowledgedCommand[] = [];
  readonly answers: CapturedAnswer[] = [];
  private busy = 0;
  private readonly reviewSeenAtMs = new Map<string, number>();
  private readonly labels = new Map<string, string>();

  constructor(
    private readonly scenario: Scenario,
    private readonly world: SharedWorld,
    private readonly random: Random,
    private readonly nodes: () => readonly SimNode[],
  ) {
    scenario.operations.forEach((_, op) => this.labels.set(this.streamOf(op), `#${op}${scenario.operations[op]!.providerClass}`));
  }

  get areDone(): boolean {
    return this.busy === 0;
  }

  get canaries(): readonly string[] {
    return this.scenario.operations.map((_, op) => canaryOf(op));
  }

  get tenantMarks(): Record<string, string[]> {
    const marks: Record<string, string[]> = {};
    this.scenario.operations.forEach(({ tenant }, op) => (marks[tenant] ??= []).push(`"workflow_id":"w-${op}"`));
    return marks;
  }

  referenceOf(op: number): string {
    return `order-${op}`;
  }

  /** How a trace calls a stream: its number and its provider's class. */
  labelOf(stream: string): string {
    return this.labels.get(stream) ?? stream;
  }

  reviewSeen(stream: string): void {
    this.reviewSeenAtMs.set(operationIdOf(stream), this.world.time.nowMs);
  }

  begin(step: ClientStep): void {
    this.busy++;
    const done = () => {
      this.busy--;
    };
    const work = step.kind === 'submit' ? this.submit(step) : step.kind === 'cancel' ? this.cancel(step.op) : this.operate(step);
    void work.then(done, (error: unknown) => {
      // A client of the simulation that breaks is a fault of the simulation: it must not pass for a quiet one.
      this.world.time.after(0, () => {
        throw error;
      });
    });
  }

  private async submit(step: Submission): Promise<void> {
    const body = this.bodyOf(step);
    const { tenant } = this.scenario.operations[step.op]!;
    let answersToLose = step.answersLost;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const answer = await this.request((node) => node.plan(body, callerOf(tenant, 'agent')));
      if (answer.kind === 'refused') return;
      if (answer.kind === 'answered' && answersToLose-- <= 0) {
        const { facts } = answer.value.operation.state;
        this.answers.push({ tenant, text: JSON.stringify(facts) });
        this.acknowledged.push({
          operationId: facts.operationId,
          tenant,
          command: 'plan',
          answeredHash: facts.payloadHash,
          submittedHash: payloadHash(nodeHashing, this.world.identitySecrets[0]!, body.payload, ['/reason']),
          intent: JSON.stringify([body.action_type, body.identity]),
          businessReference: this.referenceOf(step.op),
        });
        return;
      }
      await this.pause(this.random.between(100, 2_000));
    }
  }

  private async cancel(op: number): Promise<void> {
    const { tenant } = this.scenario.operations[op]!;
    const operationId = operationIdOf(this.streamOf(op));
    const answer = await this.request((node) =>
      node.act(operationId, { type: 'CancelOperation', reason: 'not wanted any more' }, callerOf(tenant, 'agent')),
    );
    if (answer.kind === 'answered') this.acknowledged.push({ operationId, tenant, command: 'cancel' });
  }

  /** One look at the list of open reviews, and a verdict on each of them. */
  private async operate({ style, waitMs }: Extract<Step, { readonly kind: 'operator' }>): Promise<void> {
    await this.pause(waitMs);
    for (const { operationId, state } of this.world.view.facts()) {
      if (state.review === null) continue;
      if (style === 'asks_again') {
        await this.request((node) =>
          node.act(operationId, { type: 'RequestCheck', reason: null }, callerOf(state.facts.tenant, 'operator')),
        );
      } else if (style === 'race') {
        await Promise.all([
          this.decide(operationId, state, this.verdictOn(operationId, state)),
          this.decide(operationId, state, 'retry_once'),
        ]);
      } else {
        const decision = style === 'retries' ? 'retry_once' : style === 'gives_up' ? 'give_up' : this.verdictOn(operationId, state);
        await this.decide(operationId, state, decision);
      }
    }
  }

  /** What somebody finds who asks the provider himself; null as long as nobody can know yet. */
  private verdictOn(operationId: string, state: KnownOperation): ReviewDecision | null {
    if (state.status !== 'unknown') return 'acknowledge';
    const reference = this.referenceOfOperation(operationId);
    const seenAtMs = this.reviewSeenAtMs.get(operationId) ?? this.world.time.nowMs;
    if (this.world.time.nowMs < seenAtMs + FINDING_OUT_MS || this.world.lab.isUnderWay(reference)) return null;
    return this.world.lab.effectsOf(reference).length > 0 ? 'happened' : 'did_not_happen';
  }

  private async decide(operationId: string, state: KnownOperation, decision: ReviewDecision | null): Promise<void> {
    if (decision === null) return;
    const { tenant } = state.facts;
    const actor = `person-${this.random.between(1, 9)}`;
    const effectId = this.world.lab.effectsOf(this.referenceOfOperation(operationId))[0]?.id ?? null;
    const decisionId = this.random.uuid();
    const answer = await this.request((node) =>
      node.act(
        operationId,
        {
          type: 'DecideReview',
          decision,
          decisionId,
          expectedRevision: state.revision,
          actor,
          reason: 'asked the provider',
          evidence: decision === 'did_not_happen' ? 'the provider has no such order' : null,
          providerOperationId: decision === 'happened' ? effectId : null,
        },
        callerOf(tenant, 'operator'),
      ),
    );
    if (answer.kind === 'answered') this.acknowledged.push({ operationId, tenant, command: 'decide', decisionId, decision });
  }

  /** One request to any process. Whether it is answered, refused, or nothing is heard of it, the client goes on. */
  private request<T>(
    ask: (node: SimNode) => Promise<T>,
  ): Promise<{ readonly kind: 'answered'; readonly value: T } | { readonly kind: 'refused' | 'failed' }> {
    const { time } = this.world;
    const nodes = this.nodes();
    if (nodes.length === 0) return Promise.resolve({ kind: 'failed' });
    const node = this.random.pick(nodes);
    return new Promise((resolve) => {
      time.after(CLIENT_TIMEOUT_MS, () => resolve({ kind: 'failed' }));
      const answer = (settle: () => void) => node.process.deliver(() => time.after(node.process.travelMs(), settle));
      time.after(node.process.travelMs(), () =>
        node.process.deliver(() => {
          ask(node).then(
            (value) => answer(() => resolve({ kind: 'answered', value })),
            (error: Error) => answer(() => resolve({ kind: error.name === 'Problem' ? 'refused' : 'failed' })),
          );
        }),
      );
    });
  }

  private bodyOf({ op, variant }: Submission) {
    const { providerClass } = this.scenario.operations[op]!;
    return {
      action_type: actionName(providerClass),
      identity: this.identityOf(op),
      payload: {
        account_id: canaryOf(op),
        amount_minor: variant === 'conflicting' ? 999 : 100 + op,
        business_reference: this.referenceOf(op),
        ...(variant === 'reworded' && { reason: `put in other words, ${this.random.between(1, 1_000)}` }),
      },
      source: { run_id: this.random.uuid() },
    };
  }

  private identityOf(op: number) {
    return { workflow_id: `w-${op}`, step: 'pay', business_object: `invoice-${op}`, revision: 1 };
  }

  private streamOf(op: number): string {
    const { tenant, providerClass } = this.scenario.operations[op]!;
    const intent = { tenant, actionType: actionName(providerClass), identity: this.identityOf(op) };
    return streamOf(deriveIdentity(nodeHashing, this.world.identitySecrets, intent).operationId);
  }

  private referenceOfOperation(operationId: string): string {
    return this.referenceOf(Number(/^#(\d+)/.exec(this.labelOf(streamOf(operationId)))![1]));
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.world.time.after(ms, resolve));
  }
}

/** Personal data of an operation: nowhere to be seen but at the provider. */
function canaryOf(op: number): string {
  return `canary.${op}.someone@example.org`;
}

function callerOf(tenant: string, role: Caller['role']): Caller {
  return { tenant, role, actor: `key:${tenant}` };
}
