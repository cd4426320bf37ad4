import { decideCall, type Call, type Decision } from '#apps/provider-lab/src/decide-call.js';
import { Ledger, type Entry } from '#apps/provider-lab/src/ledger.js';
import type { HttpMode } from '#apps/provider-lab/src/modes.js';
import {
  classRules,
  initialSettings,
  type ClassSettings,
  type LookupFault,
  type ProviderClass,
} from '#apps/provider-lab/src/provider-classes.js';
import type { LedgerCall } from '../checker/check-invariants.js';
import { SHORT_RETENTION_MS, VISIBILITY_LAG_MS } from './catalogue.js';
import type { CallScript } from './scenario.js';
import type { VirtualTime } from './virtual-time.js';

export interface LabRequest {
  readonly providerClass: ProviderClass;
  readonly providerKey: string;
  readonly payload: { readonly business_reference: string; readonly amount_minor: number };
}

export interface LabItem {
  readonly id: string | null;
  readonly amount_minor: number;
}

const KIND = 'payment-orders';
const SETTINGS: Readonly<Record<ProviderClass, ClassSettings>> = {
  ...initialSettings,
  b: { ...initialSettings.b, keyRetentionMs: SHORT_RETENTION_MS },
  d: { ...initialSettings.d, visibilityLagMs: VISIBILITY_LAG_MS },
};
const GOES_WELL: CallScript = { mode: 'OK', travelMs: 5, landMs: 0, effect: true };

/**
 * The provider lab without its sockets: its own ledger and its own decisions, on virtual time. It outlives every process of ours, as a
 * real provider does, and its clock is never stepped.
 */
export class SimLab {
  readonly ledger = new Ledger();
  private readonly entries: Entry[] = [];
  /** By business reference; what is used up, or never was there, goes well. */
  private readonly scripts = new Map<string, CallScript[]>();
  private readonly lookUpFaults = new Map<string, LookupFault[]>();
  private readonly underWay = new Map<string, number>();
  private seq = 0;
  private ids = 0;
  lookUps = 0;

  constructor(private readonly time: VirtualTime) {}

  script(reference: string, scripts: readonly CallScript[]): void {
    this.scripts.set(reference, [...scripts]);
  }

  scriptLookUps(reference: string, faults: readonly LookupFault[]): void {
    this.lookUpFaults.set(reference, [...faults]);
  }

  /** From here on everything goes well. */
  calm(): void {
    this.scripts.clear();
    this.lookUpFaults.clear();
  }

  /** How the next call with this reference goes. */
  nextCall(reference: string): CallScript {
    return this.scripts.get(reference)?.shift() ?? GOES_WELL;
  }

  nextLookUp(reference: string): LookupFault {
    return this.lookUpFaults.get(reference)?.shift() ?? 'none';
  }

  /** A request has left, and arrives later, whatever becomes of its sender. */
  leaves(reference: string): void {
    this.underWay.set(reference, (this.underWay.get(reference) ?? 0) + 1);
  }

  isUnderWay(reference: string): boolean {
    return (this.underWay.get(reference) ?? 0) > 0;
  }

  get isQuiet(): boolean {
    return [...this.underWay.values()].every((count) => count === 0) && this.ledger.pendingLandings().length === 0;
  }

  arrives(request: LabRequest, script: CallScript): Decision {
    const { payload, providerClass, providerKey } = request;
    const reference = payload.business_reference;
    const call: Call = {
      class: providerClass,
      kind: KIND,
      providerKey,
      businessReference: reference,
      amountMinor: payload.amount_minor,
      currency: 'EUR',
      digest: JSON.stringify(payload),
      at: this.time.nowMs,
    };
    const labScript = {
      id: 0,
      reference: null,
      class: null,
      mode: script.mode,
      timesLeft: null,
      delayMs: script.landMs,
      retryAfterSeconds: 1,
      effect: script.effect,
    };
    const decision = decideCall(call, labScript, SETTINGS[providerClass], this.ledger, () => `po_${++this.ids}`);
    const entry = this.record(call, script.mode, decision);
    if (entry.landAt === null) this.ends(reference);
    else this.time.at(entry.landAt, () => this.land(entry));
    return decision;
  }

  /** What the provider is willing to say about a key. */
  items(providerClass: ProviderClass, providerKey: string): LabItem[] {
    this.lookUps++;
    if (!classRules[providerClass].lookup) return [];
    const visibleUntil = this.time.nowMs - SETTINGS[providerClass].visibilityLagMs;
    return this.ledger
      .entriesOf(providerKey)
      .filter((entry) => entry.class === providerClass && entry.effectAt !== null && entry.effectAt <= visibleUntil)
      .map(({ id, amountMinor }) => ({ id, amount_minor: amountMinor ?? 0 }));
  }

  effectsOf(reference: string): readonly Entry[] {
    return this.ledger.entriesOf(reference).filter(({ effectAt }) => effectAt !== null);
  }

  get calls(): readonly LedgerCall[] {
    return this.entries.map(({ providerKey, businessReference, effectAt, id, at, mode, digest }) => ({
      providerKey,
      businessReference,
      effect: effectAt !== null,
      id,
      atMs: at,
      mode,
      digest,
    }));
  }

  private record(call: Call, mode: HttpMode, decision: Decision): Entry {
    const entry: Entry = {
      ...call,
      seq: ++this.seq,
      id: decision.id,
      mode,
      status: decision.status === 0 ? null : decision.status,
      replayed: decision.replayed,
      landAt: decision.landAt,
      effectAt: decision.effect ? call.at : null,
    };
    this.ledger.add(entry, SETTINGS[call.class]);
    this.entries.push(entry);
    return entry;
  }

  private land(entry: Entry): void {
    const reference = entry.businessReference!;
    const isTaken = entry.class === 'e' && this.ledger.hasEffect(entry.class, entry.kind, reference);
    if (isTaken) this.ledger.drop(entry.seq);
    else this.ledger.land(entry.seq, this.time.nowMs);
    this.ends(reference);
  }

  private ends(reference: string): void {
    this.underWay.set(reference, this.underWay.get(reference)! - 1);
  }
}
