import { ledgerCallsOf } from '../checker/ledger-facts.js';
import type { LedgerCall } from '../checker/facts.js';

export interface LabTotals {
  readonly calls: number;
  readonly lookups: number;
  readonly effects: number;
  readonly pending_landings: number;
}

/** The lab is frozen for seconds at times; a minute without an answer means that it is gone. */
const ANSWER_MS_MAX = 60_000;
const AT_ONCE = 16;

/** The provider's own side: how it is to treat whom, and its ledger. */
export class LabClient {
  constructor(private readonly url: string) {}

  async script(reference: string, mode: string, more: object = {}): Promise<void> {
    await this.ask('PUT', '/lab/script', { match: { reference }, mode, times: 1, ...more });
  }

  async setVisibilityLag(ms: number): Promise<void> {
    await this.ask('PUT', '/lab/class/d', { visibility_lag_ms: ms });
  }

  async totals(): Promise<LabTotals> {
    return (await this.ask('GET', '/lab/ledger')) as LabTotals;
  }

  async callsOf(reference: string): Promise<LedgerCall[]> {
    return ledgerCallsOf(await this.ask('GET', `/lab/ledger?reference=${encodeURIComponent(reference)}`));
  }

  /** The whole ledger, by the references that were ordered. */
  async ledger(references: readonly string[]): Promise<LedgerCall[]> {
    const ledger: LedgerCall[] = [];
    let next = 0;
    const read = async () => {
      for (let index = next++; index < references.length; index = next++) ledger.push(...(await this.callsOf(references[index]!)));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, read));
    return ledger;
  }

  private async ask(method: string, path: string, body?: object): Promise<unknown> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    if (!answer.ok) throw new Error(`The lab refused ${method} ${path}: ${await answer.text()}`);
    return answer.json();
  }
}
