import { describe, expect, it } from 'vitest';
import { Ledger, type Entry } from '#apps/provider-lab/src/ledger.js';
import { referenceJson, totalsJson } from '#apps/provider-lab/src/ledger-json.js';
import { initialSettings } from '#apps/provider-lab/src/provider-classes.js';

const at = Date.parse('2026-01-01T00:00:00Z');

function entry(seq: number, fields: Partial<Entry> = {}): Entry {
  return {
    seq,
    class: 'c',
    kind: 'payment-orders',
    providerKey: `k-${seq}`,
    businessReference: null,
    id: `po_${seq}`,
    mode: 'OK',
    at,
    status: 200,
    replayed: false,
    digest: null,
    amountMinor: null,
    currency: null,
    landAt: null,
    effectAt: at,
    ...fields,
  };
}

function ledgerOf(...calls: Partial<Entry>[]): Ledger {
  const ledger = new Ledger();
  calls.forEach((fields, index) => ledger.add(entry(index + 1, fields), initialSettings.c));
  return ledger;
}

describe('one intent became two effects', () => {
  const maximum = (...calls: Partial<Entry>[]) => ledgerOf(...calls).totals().maxEffectsPerReference;

  it('when one key has two effects', () => {
    expect(maximum({ providerKey: 'k' }, { providerKey: 'k' })).toBe(2);
  });

  it('when a reference without key has two', () => {
    expect(maximum({ providerKey: null, businessReference: 'app' }, { providerKey: null, businessReference: 'app' })).toBe(2);
  });

  it('not when two revisions share a business reference', () => {
    const ledger = ledgerOf({ providerKey: 'rev-1', businessReference: 'app' }, { providerKey: 'rev-2', businessReference: 'app' });
    expect(ledger.totals()).toMatchObject({ maxEffectsPerReference: 1, references: 2, maxEffectsPerBusinessReference: 2 });
  });

  it('not when one of the calls had no effect', () => {
    expect(maximum({ providerKey: 'k' }, { providerKey: 'k', effectAt: null })).toBe(1);
  });

  it('not when two classes, or two kinds, use the same reference', () => {
    expect(maximum({ providerKey: 'k' }, { providerKey: 'k', class: 'f' }, { providerKey: 'k', kind: 'refunds' })).toBe(1);
  });

  it('also when the second one lands late', () => {
    const ledger = ledgerOf({ providerKey: 'k', effectAt: null, landAt: at }, { providerKey: 'k' });
    expect(ledger.totals()).toMatchObject({ maxEffectsPerReference: 1, pendingLandings: 1 });
    ledger.land(1, at + 1);
    expect(ledger.totals()).toMatchObject({ maxEffectsPerReference: 2, effects: 2, pendingLandings: 0 });
  });

  it('cannot be said of effects that carry no reference', () => {
    const ledger = ledgerOf({ providerKey: null }, { providerKey: null });
    expect(ledger.totals()).toMatchObject({ maxEffectsPerReference: 0, references: 0, effects: 2, unreferencedEffects: 2 });
  });
});

it('answers a reference in the shape of the contract', () => {
  const ledger = ledgerOf({ providerKey: 'k', businessReference: 'app', mode: 'ACCEPT_504', status: 504 });
  expect(referenceJson(ledger, 'app')).toEqual({
    calls: 1,
    effects: 1,
    lookups: 0,
    entries: [
      {
        class: 'c',
        kind: 'payment-orders',
        provider_key: 'k',
        business_reference: 'app',
        id: 'po_1',
        effect: true,
        mode: 'ACCEPT_504',
        at: '2026-01-01T00:00:00.000Z',
        status: 504,
        replayed: false,
      },
    ],
    entries_omitted: 0,
  });
  expect(referenceJson(ledger, 'nobody')).toEqual({ calls: 0, effects: 0, lookups: 0, entries: [], entries_omitted: 0 });
});

it('counts a call once when its key is also its business reference', () => {
  expect(referenceJson(ledgerOf({ providerKey: 'k', businessReference: 'k' }), 'k')).toMatchObject({ calls: 1, effects: 1 });
});

it('bounds what it lists, and counts all', () => {
  const ledger = new Ledger();
  for (let seq = 1; seq <= 1_200; seq += 1) ledger.add(entry(seq, { providerKey: 'k' }), initialSettings.c);
  const answer = referenceJson(ledger, 'k');
  expect(answer).toMatchObject({ calls: 1_200, effects: 1_200, entries_omitted: 200 });
  expect((answer.entries as { id: string }[]).map((item) => item.id).slice(-1)).toEqual(['po_1200']);
  for (let seq = 2_000; seq < 2_300; seq += 1) {
    ledger.add(entry(seq, { providerKey: `d-${seq % 150}` }), initialSettings.c);
  }
  expect(totalsJson(ledger).duplicates).toHaveLength(100);
});

it('answers totals and one reference without going through all calls', { timeout: 30_000 }, () => {
  const ledger = new Ledger();
  for (let seq = 1; seq <= 50_000; seq += 1) ledger.add(entry(seq, { businessReference: `app-${seq}` }), initialSettings.c);
  const roundsMs: number[] = [];
  for (let round = 0; round < 200; round += 1) {
    const started = performance.now();
    totalsJson(ledger);
    referenceJson(ledger, `k-${round * 200 + 1}`);
    roundsMs.push(performance.now() - started);
  }
  // The best round says what it costs, also on a busy machine: one pass over 50,000 calls takes longer than this.
  expect(Math.min(...roundsMs)).toBeLessThan(0.05);
  expect(totalsJson(ledger)).toMatchObject({ calls: 50_000, effects: 50_000, references: 50_000, max_effects_per_reference: 1 });
});
