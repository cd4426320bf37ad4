import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from '#adapters/postgres/database.js';
import type { KnownOperation, ReviewDecision } from '#domain';
import type { AcknowledgedCommand } from '../checker/facts.js';
import type { Random } from '../simulation/random.js';
import type { Callers } from './callers.js';
import type { LabClient } from './lab-client.js';
import { LANDING_MS, LEASE_MS } from './times.js';

const LOOK_EVERY_MS = 5_000;
/** By then whatever may have been sent has landed: the end of the lease, the landing, and as much again for clocks and a busy machine. */
const FINDING_OUT_MS = 2 * (LEASE_MS + LANDING_MS);
/** A person works off a list a page at a time. */
const PAGE = 100;
const SHARES = { decided: 0.8, race: 0.2, givesUp: 0.1, retries: 0.4 };

/** People who look at the reviews that are open, ask the provider themselves, and decide; sometimes two of them at once. */
export class Operators {
  readonly decided: AcknowledgedCommand[] = [];
  /** By operation: left for another day, so that a run ends with reviews that are open. */
  private readonly left = new Set<string>();
  private over = false;

  constructor(
    private readonly callers: Callers,
    private readonly lab: LabClient,
    private readonly pool: Pool,
    private readonly random: Random,
    private readonly tenant: string,
  ) {}

  async run(): Promise<void> {
    while (!this.over) {
      // The database may be away, and the next look comes soon.
      await this.workOff().catch(() => undefined);
      await delay(LOOK_EVERY_MS);
    }
  }

  end(): void {
    this.over = true;
  }

  private async workOff(): Promise<void> {
    const { rows } = await this.pool.query<{ state: string }>(
      `select state from onefold.operation_view where status = 'unknown' and position('"review":null' in state) = 0 order by updated_at limit $1`,
      [PAGE + this.left.size],
    );
    for (const { state } of rows) {
      const operation = JSON.parse(state) as KnownOperation;
      const { operationId } = operation.facts;
      if (operation.review === null || this.over || this.left.has(operationId)) continue;
      if (Date.now() < operation.review.requestedAtMs + FINDING_OUT_MS) continue;
      if (this.random.chance(SHARES.decided)) await this.decide(operation);
      else this.left.add(operationId);
    }
  }

  private async decide(operation: KnownOperation): Promise<void> {
    const reference = String(operation.facts.identity['business_object']);
    const effect = (await this.lab.callsOf(reference)).find((call) => call.effect);
    const verdict = this.verdictOn(effect !== undefined);
    const verdicts: ReviewDecision[] = this.random.chance(SHARES.race) ? [verdict, 'give_up'] : [verdict];
    await Promise.all(verdicts.map((decision) => this.resolve(operation, decision, effect?.id ?? null)));
  }

  /** What is found is told truly, or nobody commits to anything: a person who lies can't be helped by software. */
  private verdictOn(happened: boolean): ReviewDecision {
    if (this.random.chance(SHARES.givesUp)) return 'give_up';
    if (happened) return 'happened';
    return this.random.chance(SHARES.retries) ? 'retry_once' : 'did_not_happen';
  }

  /** Another may have been first (409, 412); what was answered with 200 has to be found in the log. */
  private async resolve({ facts, revision }: KnownOperation, decision: ReviewDecision, effectId: string | null): Promise<void> {
    const { operationId } = facts;
    const decisionId = this.random.uuid();
    const body = {
      ...{ decision, reason: 'asked the provider' },
      ...(decision === 'happened' && { provider_operation_id: effectId }),
      ...(decision === 'did_not_happen' && { evidence: 'the provider has no such order' }),
    };
    const headers = { 'if-match': `"${revision}"`, 'idempotency-key': decisionId };
    const answer = await this.callers.ask('POST', `/v1/operations/${operationId}/resolve`, body, headers);
    if (answer?.status === 200) this.decided.push({ operationId, tenant: this.tenant, command: 'decide', decisionId, decision });
  }
}
