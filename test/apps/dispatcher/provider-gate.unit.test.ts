import { describe, expect, it } from 'vitest';
import type { BreakerSettings } from '#domain';
import { ProviderGate } from '#apps/dispatcher/src/provider-gate.js';

interface Settings {
  readonly concurrency?: number;
  readonly perSecond?: number | null;
  readonly breaker?: BreakerSettings | null;
  readonly canLookUp?: boolean;
}

function gateWith({ concurrency = 100, perSecond = null, breaker = null, canLookUp = false }: Settings = {}) {
  const time = { nowMs: 1_000_000 };
  const provider = { name: 'payments', kind: 'http', timeoutMs: 1_000, limits: { concurrency, perSecond }, breaker } as const;
  const gate = new ProviderGate(provider, canLookUp, () => time.nowMs);
  /** Uses as many slots as there are, at most 1,000. */
  const useAll = () => {
    let used = 0;
    while (used < 1_000 && gate.tryUse('attempt')) used++;
    return used;
  };
  const attempt = (health: 'answered' | 'unhealthy' | 'unclear') => {
    expect(gate.tryUse('attempt')).toBe(true);
    gate.done(health);
  };
  return { gate, time, useAll, attempt };
}

describe('the concurrency of a provider', () => {
  it('bounds attempts and look-ups together', () => {
    const { gate } = gateWith({ concurrency: 2 });
    expect([gate.room(), gate.tryUse('attempt'), gate.room(), gate.tryUse('lookup')]).toEqual([2, true, 1, true]);
    expect([gate.room(), gate.tryUse('attempt'), gate.tryUse('lookup')]).toEqual([0, false, false]);
    gate.done('answered');
    expect([gate.room(), gate.tryUse('attempt'), gate.room()]).toEqual([1, true, 0]);
  });
});

describe('the rate of a provider', () => {
  it('is at most one second’s worth at once, and then as declared', () => {
    const { gate, time, useAll } = gateWith({ concurrency: 1_000, perSecond: 10 });
    expect([gate.room(), useAll(), gate.room()]).toEqual([10, 10, 0]);
    expect(gate.retryInMs('attempt')).toBe(100);
    time.nowMs += 99;
    expect(useAll()).toBe(0);
    time.nowMs += 1;
    expect([gate.retryInMs('attempt'), useAll()]).toEqual([0, 1]);
    time.nowMs += 3_600_000;
    expect(useAll()).toBe(10);
  });

  it('may be less than one a second', () => {
    const { gate, time, useAll } = gateWith({ perSecond: 0.5 });
    time.nowMs += 60_000;
    expect([useAll(), gate.retryInMs('lookup')]).toEqual([1, 2_000]);
    time.nowMs += 2_000;
    expect(useAll()).toBe(1);
  });

  it('counts requests, so that a slot given back unused costs nothing of it', () => {
    const { gate, useAll } = gateWith({ perSecond: 10 });
    for (let replay = 0; replay < 100; replay++) {
      expect(gate.tryUse('attempt')).toBe(true);
      gate.done('unused');
    }
    expect(useAll()).toBe(10);
    gate.done('unused');
    gate.done('answered');
    expect(useAll()).toBe(1);
  });
});

describe('the breaker of a provider', () => {
  const breaker: BreakerSettings = { failures: 3, windowMs: 1_000, halfOpen: 'attempt' };
  const probing = { breaker: { ...breaker, halfOpen: 'lookup' }, canLookUp: true } as const;

  function opened(settings: Settings = { breaker }) {
    const all = gateWith(settings);
    for (let n = 0; n < 3; n++) all.attempt('unhealthy');
    expect(all.gate.breakerState()).toBe('open');
    return all;
  }

  it('opens after so many failures within its window, and stays open for as long', () => {
    const { gate, time } = opened();
    expect([gate.tryUse('attempt'), gate.retryInMs('attempt')]).toEqual([false, 1_000]);
    time.nowMs += 999;
    expect([gate.breakerState(), gate.tryUse('attempt'), gate.retryInMs('attempt')]).toEqual(['open', false, 1]);
    time.nowMs += 1;
    expect(gate.breakerState()).toBe('half_open');
  });

  it('does not open for failures that are further apart, that are unclear, or with answers between them', () => {
    const { gate, time, attempt } = gateWith({ breaker });
    for (let n = 0; n < 10; n++) {
      attempt('unhealthy');
      time.nowMs += 500;
    }
    expect(gate.breakerState()).toBe('closed');
    time.nowMs += 1_000;
    for (const health of ['unhealthy', 'unhealthy', 'answered', 'unhealthy', 'unhealthy', 'unclear', 'unclear'] as const) attempt(health);
    expect(gate.breakerState()).toBe('closed');
  });

  it('is not there where none is declared', () => {
    const { gate, attempt } = gateWith();
    for (let n = 0; n < 100; n++) attempt('unhealthy');
    expect(gate.breakerState()).toBe('closed');
  });

  it('lets look-ups pass while it is open, and does not put them off', () => {
    const { gate } = opened({ breaker, concurrency: 2, canLookUp: true });
    expect([gate.tryUse('lookup'), gate.tryUse('lookup'), gate.tryUse('lookup')]).toEqual([true, true, false]);
    expect(gate.retryInMs('lookup')).toBe(0);
  });

  it('tries one attempt when it half-opens, and closes by its answer', () => {
    const { gate, time } = opened();
    time.nowMs += 1_000;
    expect([gate.needsProbe(), gate.room(), gate.tryUse('attempt')]).toEqual([false, 1, true]);
    expect([gate.room(), gate.tryUse('attempt')]).toEqual([0, false]);
    gate.done('answered');
    expect([gate.breakerState(), gate.tryUse('attempt'), gate.tryUse('attempt')]).toEqual(['closed', true, true]);
  });

  it('opens again for its window when the one attempt fails', () => {
    const { gate, time, attempt } = opened();
    time.nowMs += 1_000;
    attempt('unhealthy');
    expect([gate.breakerState(), gate.retryInMs('attempt')]).toEqual(['open', 1_000]);
  });

  it('stays half-open when the one slot was not used', () => {
    const { gate, time } = opened();
    time.nowMs += 1_000;
    gate.tryUse('attempt');
    gate.done('unused');
    expect([gate.breakerState(), gate.tryUse('attempt')]).toEqual(['half_open', true]);
  });

  it('tries one look-up before any attempt where the catalogue says so', () => {
    const { gate, time } = opened(probing);
    expect(gate.tryUse('probe')).toBe(false);
    time.nowMs += 1_000;
    expect([gate.needsProbe(), gate.tryUse('attempt'), gate.tryUse('probe'), gate.tryUse('probe')]).toEqual([true, false, true, false]);
    gate.done('looked_up');
    expect([gate.breakerState(), gate.needsProbe(), gate.tryUse('attempt')]).toEqual(['closed', false, true]);
  });

  it('opens again when that look-up fails', () => {
    const { gate, time } = opened(probing);
    time.nowMs += 1_000;
    gate.tryUse('probe');
    gate.done('unhealthy');
    expect([gate.breakerState(), gate.needsProbe()]).toEqual(['open', false]);
  });

  it('tries an attempt where the provider has no look-up any more', () => {
    const { gate, time } = opened({ ...probing, canLookUp: false });
    time.nowMs += 1_000;
    expect([gate.needsProbe(), gate.tryUse('attempt')]).toEqual([false, true]);
  });

  it('takes no look-up for an answered attempt: a provider that can be asked but not be used stays shut', () => {
    const { gate, attempt, time } = gateWith({ breaker, canLookUp: true });
    for (let n = 0; n < 3; n++) {
      attempt('unhealthy');
      gate.tryUse('lookup');
      gate.done('looked_up');
    }
    expect(gate.breakerState()).toBe('open');
    time.nowMs += 1_000;
    gate.tryUse('lookup');
    gate.done('looked_up');
    expect(gate.breakerState()).toBe('half_open');
  });
});
