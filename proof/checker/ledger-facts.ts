import type { LedgerCall } from './facts.js';

/** One entry of the lab's `GET /lab/ledger?reference=` answer. */
interface LabEntry {
  readonly provider_key: string | null;
  readonly business_reference: string | null;
  readonly id: string | null;
  readonly effect: boolean;
  readonly mode: string;
  readonly at: string;
}

/** The calls of one answer of the lab. @throws Error where the lab has left entries out: half a ledger proves nothing */
export function ledgerCallsOf(answer: unknown): LedgerCall[] {
  const { entries, entries_omitted: omitted } = answer as { entries?: readonly LabEntry[]; entries_omitted?: number };
  if (!Array.isArray(entries)) throw new Error('This is no answer of GET /lab/ledger?reference=: it has no entries.');
  if (omitted) throw new Error(`The lab has left out ${omitted} calls of this reference; count effects by its totals instead.`);
  return (entries as readonly LabEntry[]).map(({ provider_key, business_reference, id, effect, mode, at }) => ({
    providerKey: provider_key,
    businessReference: business_reference,
    id,
    effect,
    mode,
    atMs: Date.parse(at),
  }));
}
