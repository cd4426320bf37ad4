import type { Entry, Ledger } from './ledger.js';

/** Enough to see what went wrong; the counts are over all. */
const maxEntries = 1_000;
const maxDuplicates = 100;

/** `GET /lab/ledger?reference=`: the newest calls that carry the reference, in order of arrival. */
export function referenceJson(ledger: Ledger, reference: string): Record<string, unknown> {
  const entries = ledger.entriesOf(reference);
  let effects = 0;
  for (const entry of entries) if (entry.effectAt !== null) effects += 1;
  return {
    calls: entries.length,
    effects,
    lookups: ledger.lookupsOf(reference),
    entries: entries.slice(-maxEntries).map(entryJson),
    entries_omitted: Math.max(0, entries.length - maxEntries),
  };
}

/** `GET /lab/ledger`: the totals over all calls, without the calls. What the counts mean: see {@link Ledger}. */
export function totalsJson(ledger: Ledger): Record<string, unknown> {
  const totals = ledger.totals();
  return {
    calls: totals.calls,
    effects: totals.effects,
    references: totals.references,
    max_effects_per_reference: totals.maxEffectsPerReference,
    max_effects_per_business_reference: totals.maxEffectsPerBusinessReference,
    unreferenced_effects: totals.unreferencedEffects,
    pending_landings: totals.pendingLandings,
    lookups: totals.lookups,
    duplicates: ledger
      .duplicates(maxDuplicates)
      .map(({ entry, reference, effects }) => ({ class: entry.class, kind: entry.kind, reference, effects })),
    entries_omitted: totals.calls,
  };
}

const entryJson = (entry: Entry) => ({
  class: entry.class,
  kind: entry.kind,
  provider_key: entry.providerKey,
  business_reference: entry.businessReference,
  id: entry.id,
  effect: entry.effectAt !== null,
  mode: entry.mode,
  at: new Date(entry.at).toISOString(),
  status: entry.status,
  replayed: entry.replayed,
});
