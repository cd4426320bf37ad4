import { beforeAll, describe, expect, it } from 'vitest';
import type { OperationEvent, RecordedEvent } from '#domain';
import { checkInvariants, INVARIANTS, printViolation, type Facts } from '../../../proof/checker/check-invariants.js';
import { ledgerCallsOf } from '../../../proof/checker/ledger-facts.js';
import type { Scenario } from '../../../proof/simulation/scenario.js';
import { simulate } from '../../../proof/simulation/simulation.js';

const ok = { mode: 'OK', travelMs: 5, landMs: 0, effect: true } as const;

/** Three operations of classes C, A and F: one in doubt that was looked up, one told to wait, one that a person decided. */
const scenario: Scenario = {
  seed: 1,
  nodes: 1,
  operations: [
    { providerClass: 'c', tenant: 'acme' },
    { providerClass: 'a', tenant: 'globex' },
    { providerClass: 'f', tenant: 'acme' },
  ],
  steps: [
    { kind: 'calls', atMs: 0, op: 0, scripts: [{ ...ok, mode: 'HANG' }, ok] },
    { kind: 'calls', atMs: 0, op: 1, scripts: [{ ...ok, mode: 'R429' }, ok] },
    { kind: 'calls', atMs: 0, op: 2, scripts: [{ ...ok, mode: 'ACCEPT_HANG' }] },
    ...[0, 1, 2].map((op) => ({ kind: 'submit', atMs: 100, op, variant: 'same', answersLost: 0 }) as const),
    { kind: 'operator', atMs: 70_000, style: 'finds_out', waitMs: 0 },
  ],
};

let clean: Facts;
beforeAll(async () => {
  clean = (await simulate(scenario)).facts;
});

const log = () => clean.log!;
const streamWith = (type: OperationEvent['type']) => log().find(({ event }) => event.type === type)!.stream;
/** Changes the events of one type; what is undefined is left out. */
const changing = (type: OperationEvent['type'], change: (event: RecordedEvent) => RecordedEvent | undefined) => ({
  log: log().flatMap((event) => (event.event.type === type ? (change(event) ?? []) : event)),
});
const withData = (recorded: RecordedEvent, data: object): RecordedEvent => ({
  ...recorded,
  event: { ...recorded.event, data: { ...recorded.event.data, ...data } } as OperationEvent,
});

/** For each invariant, facts that break it. */
const BROKEN: Record<string, () => Partial<Facts>> = {
  I1: () => ({ ledger: [...clean.ledger!, { ...clean.ledger!.find(({ effect }) => effect)! }] }),
  I2: () => ({ log: log().filter(({ stream }) => stream !== log()[0]!.stream) }),
  I3: () => ({ log: log().filter(({ event }) => event.type !== 'OperationSucceeded') }),
  I4: () => ({ ledger: clean.ledger!.map((call) => ({ ...call, effect: false })) }),
  I5: () => changing('OutcomeChecked', (event) => withData(event, { proof: false })),
  I6: () => changing('AttemptStarted', (event) => withData(event, { attempt: 1 })),
  I7: () => ({ acknowledged: clean.acknowledged!.map((command) => ({ ...command, submittedHash: 'hs256-v1:other' })) }),
  I8: () => changing('AttemptStarted', (event) => ({ ...event, revision: event.revision + 1 })),
  I9: () => ({ view: clean.view!.slice(1) }),
  I10: () => ({ topic: clean.topic!.slice(1) }),
  I11: () => ({ subscribers: [{ name: 'reader', cursor: 3n, delivered: new Set([1n, 3n]) }] }),
  I12: () => changing('OperationSucceeded', (event) => ({ ...event, metadata: { ...event.metadata, tenant: 'initech' } })),
  I13: () => ({ captured: [{ source: 'a log', text: `sent to ${clean.canaries![0]}` }] }),
  I14: () => changing('AttemptNotSent', (event) => withData(event, { retry_at: '2026-02-01T00:00:00.000Z' })),
  I15: () => ({ progress: { settledAfterMs: null, boundMs: 1_000, watchdogAlarms: 0 } }),
  I16: () => ({ replay: { calls: 1, lookUps: 0, webhooks: 0 } }),
  I17: () => changing('ReviewDecided', (event) => withData(event, { actor: ' ' })),
};

describe('the checker', () => {
  it('finds nothing in a clean run, and has checked all', () => {
    const { violations, checked, notChecked } = checkInvariants(clean);
    expect(violations).toEqual([]);
    expect(notChecked).toEqual([]);
    expect(checked).toEqual(Array.from({ length: 17 }, (_, index) => `I${index + 1}`));
  });

  it('has a broken case for each invariant', () => {
    expect(Object.keys(BROKEN)).toEqual(INVARIANTS.map(({ id }) => id));
  });

  it.each(Object.keys(BROKEN))('sees %s broken', (id) => {
    const { violations } = checkInvariants({ ...clean, ...BROKEN[id]!() });
    expect(violations.map(({ invariant }) => invariant)).toContain(id);
  });

  it.each([
    ['in doubt', 'timeout', ['I14']],
    ['known to have had no effect', 'key_retention_passed', []],
  ])('lets nothing be sent under a key that is too old after a send %s (public case 34)', (_, code, found) => {
    const { stream } = log().find(({ event }) => event.type === 'OutcomeChecked')!;
    const same_key = { by: 'key', retention_ms: 1, margin_ms: 0, repeats_stored_errors: true };
    const told = log().map((recorded) => {
      const { type, data } = recorded.event;
      if (recorded.stream !== stream) return recorded;
      if (type === 'OperationPlanned') return withData(recorded, { policy: { ...data.policy, same_key } });
      return type === 'OutcomeUnknown' ? withData(recorded, { code }) : recorded;
    });
    const budget = checkInvariants({ log: told }).violations.filter(({ invariant }) => invariant === 'I14');
    expect(budget.map(({ invariant }) => invariant)).toEqual(found);
  });

  it('says what it had no facts for', () => {
    const { checked, notChecked } = checkInvariants({ log: log() });
    expect(checked).not.toContain('I1');
    expect(notChecked).toContainEqual({ invariant: 'I1', missing: ['ledger'] });
    expect(checked.length + notChecked.length).toBe(17);
  });

  it('shows operation, stream and ledger side by side', () => {
    const { violations } = checkInvariants({ ...clean, ...BROKEN.I1!() });
    const text = printViolation(violations[0]!);
    expect(text).toContain('OperationPlanned');
    expect(text).toMatch(/ledger:\n.*EFFECT/);
    expect(streamWith('ReviewDecided')).toBeDefined();
  });
});

describe('the facts of a ledger', () => {
  const entry = {
    class: 'c',
    kind: 'refunds',
    provider_key: 'k',
    business_reference: null,
    id: 're_1',
    effect: true,
    mode: 'OK',
    at: '2026-01-05T10:00:00.000Z',
    status: 200,
    replayed: false,
  };

  it('are read from the answer of GET /lab/ledger', () => {
    const calls = ledgerCallsOf({ calls: 1, effects: 1, lookups: 0, entries: [entry], entries_omitted: 0 });
    expect(calls).toEqual([
      { providerKey: 'k', businessReference: null, id: 're_1', effect: true, mode: 'OK', atMs: Date.parse(entry.at) },
    ]);
  });

  it('are refused where the lab has left calls out', () => {
    expect(() => ledgerCallsOf({ entries: [entry], entries_omitted: 3 })).toThrow(/left out 3/);
    expect(() => ledgerCallsOf({ calls: 3 })).toThrow(/no entries/);
  });
});
