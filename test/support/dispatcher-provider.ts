import type { LookupAnswer, ProviderAdapter, ProviderAnswer, ProviderCall } from '#domain';

/** The provider classes of the fault catalogue: what a provider honours and whether it can be asked. */
export type ProviderClass = 'a' | 'b' | 'c' | 'd' | 'e' | 'f';

/** How one call behaves. */
export type Behaviour = (provider: ScriptedProvider, call: ProviderCall) => Promise<ProviderAnswer> | ProviderAnswer;

/** A place at which a call waits until the test lets it go on. */
export class Pause {
  readonly reached: Promise<void>;
  readonly released: Promise<void>;
  reach!: () => void;
  release!: () => void;

  constructor() {
    this.reached = new Promise((resolve) => (this.reach = resolve));
    this.released = new Promise((resolve) => (this.release = resolve));
  }
}

const notSent = (code: string, reached: boolean, retryAfterMs: number | null): ProviderAnswer => ({
  kind: 'not_sent',
  code,
  reached,
  retryAfterMs,
});
const inDoubt: ProviderAnswer = { kind: 'unknown', code: 'timeout', status: null };

export const behave = {
  ok: (provider: ScriptedProvider, call: ProviderCall) => provider.cause(call),
  /** The effect happens, the answer is lost. */
  acceptHang: (provider: ScriptedProvider, call: ProviderCall) => (provider.cause(call), inDoubt),
  /** The request is lost, and the caller can't know it. */
  lost: () => inDoubt,
  refuse: () => notSent('connection_refused', false, null),
  tooMany: (retryAfterMs: number | null) => () => notSent('http_429', true, retryAfterMs),
  decline: (): ProviderAnswer => ({ kind: 'failed', code: 'http_402', reason: 'The provider refused with status 402.' }),
  breakContract: (): ProviderAnswer => {
    throw new Error('an adapter must not throw');
  },
  /** Waits, then goes on as told. */
  paused: (pause: Pause, then: Behaviour) => async (provider: ScriptedProvider, call: ProviderCall) => {
    pause.reach();
    await pause.released;
    return then(provider, call);
  },
} satisfies Record<string, unknown>;

interface Entry {
  calls: number;
  effects: number;
  id: string | null;
  readonly attempts: number[];
}

/** A provider in memory with its own ledger, which is the truth about effects. It survives every dispatcher, as a real one does. */
export class ScriptedProvider implements ProviderAdapter {
  private readonly entries = new Map<string, Entry>();
  private readonly script: Behaviour[] = [];
  private readonly keyed = new Map<string, Behaviour[]>();
  readonly seen: ProviderCall[] = [];
  lookUps = 0;
  inFlight = 0;
  inFlightMax = 0;
  /** How look-ups behave when they are not answered from the ledger. */
  onLookUp: ((call: ProviderCall) => Promise<LookupAnswer> | LookupAnswer) | null = null;
  otherwise: Behaviour = behave.ok;
  readonly lookUp?: (call: ProviderCall) => Promise<LookupAnswer>;

  constructor(
    readonly providerClass: ProviderClass,
    private readonly onChange: () => void,
  ) {
    if ('abcd'.includes(providerClass)) this.lookUp = (call) => this.answerLookUp(call);
  }

  /** The next calls behave so, in this order. */
  next(...behaviours: Behaviour[]): void {
    this.script.push(...behaviours);
  }

  /** The next calls of one operation behave so. */
  nextFor(operationId: string, ...behaviours: Behaviour[]): void {
    this.keyed.set(operationId, [...(this.keyed.get(operationId) ?? []), ...behaviours]);
  }

  ledger(operationId: string): Readonly<Entry> {
    return this.entry(operationId);
  }

  get calls(): number {
    return this.seen.length;
  }

  get effects(): number {
    return [...this.entries.values()].reduce((sum, { effects }) => sum + effects, 0);
  }

  async call(call: ProviderCall): Promise<ProviderAnswer> {
    this.seen.push(call);
    const entry = this.entry(call.operationId);
    entry.calls++;
    entry.attempts.push(call.attempt);
    this.inFlight++;
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight);
    this.onChange();
    try {
      const behaviour = this.keyed.get(call.operationId)?.shift() ?? this.script.shift() ?? this.otherwise;
      return await behaviour(this, call);
    } finally {
      this.inFlight--;
      this.onChange();
    }
  }

  /** Causes the effect, as the class honours keys and references. */
  cause({ operationId }: ProviderCall): ProviderAnswer {
    const entry = this.entry(operationId);
    const known = entry.effects > 0;
    if (known && this.providerClass === 'e') return { kind: 'already_done' };
    if (!known || !'ab'.includes(this.providerClass)) {
      entry.effects++;
      entry.id = `effect-${operationId}-${entry.effects}`;
    }
    return { kind: 'succeeded', providerOperationId: entry.id, result: { ok: true }, responseDigest: 'digest' };
  }

  async close(): Promise<void> {
    // Nothing is held open.
  }

  private async answerLookUp(call: ProviderCall): Promise<LookupAnswer> {
    this.lookUps++;
    this.onChange();
    try {
      if (this.onLookUp) return await this.onLookUp(call);
      const { effects, id } = this.entry(call.operationId);
      const found = effects > 0;
      return {
        verdict: found ? 'present' : 'absent',
        code: null,
        anomaly: null,
        providerOperationId: id,
        result: found ? { ok: true } : null,
      };
    } finally {
      this.onChange();
    }
  }

  private entry(operationId: string): Entry {
    let entry = this.entries.get(operationId);
    if (!entry) this.entries.set(operationId, (entry = { calls: 0, effects: 0, id: null, attempts: [] }));
    return entry;
  }
}
