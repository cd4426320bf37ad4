import type { Entry, Ledger } from './ledger.js';
import { storedStatus } from './ledger.js';
import type { HttpMode } from './modes.js';
import { classRules, type ClassSettings, type HttpKind, type ProviderClass } from './provider-classes.js';
import type { Script } from './scripts.js';

/** A readable call, before anything was decided about it. */
export interface Call {
  readonly class: ProviderClass;
  readonly kind: HttpKind;
  readonly providerKey: string | null;
  readonly businessReference: string | null;
  readonly amountMinor: number | null;
  readonly currency: string | null;
  /** Digest of kind and body bytes; null without a key, which nothing would compare it for. */
  readonly digest: string | null;
  readonly at: number;
}

/** What the provider does with a call. `error` null means success, answered as `{"id"}`. */
export interface Decision {
  readonly status: number;
  readonly error: string | null;
  readonly id: string | null;
  readonly replayed: boolean;
  readonly effect: boolean;
  /** When a late effect lands; null: now, or never. */
  readonly landAt: number | null;
}

const refused = (status: number, error: string): Decision => ({ status, error, id: null, replayed: false, effect: false, landAt: null });

/** Modes that stop a call before the provider's books are opened. */
const turnedAway: Partial<Record<HttpMode, Decision>> = {
  R429: refused(429, 'too_many_requests'),
  IN_PROGRESS: refused(409, 'in_progress'),
  REFUSE: refused(0, 'no_answer'),
  HANG: refused(0, 'no_answer'),
  RESET_BEFORE: refused(0, 'no_answer'),
};

/**
 * Decides one call: first what the script takes away, then the class's memory of keys, then its uniqueness rule, then
 * the script's own outcome.
 */
export function decideCall(call: Call, script: Script | null, settings: ClassSettings, ledger: Ledger, newId: () => string): Decision {
  const mode = (script?.mode ?? 'OK') as HttpMode;
  const away = turnedAway[mode];
  if (away !== undefined) return away;
  const rules = classRules[call.class];
  if (rules.honoursKeys && call.providerKey !== null) {
    const first = ledger.remembered(call.class, call.providerKey, settings, call.at);
    if (first !== null) return repeatOf(first, call);
  }
  if (rules.uniqueReference && call.businessReference !== null && ledger.hasEffect(call.class, call.kind, call.businessReference)) {
    return refused(409, 'duplicate_reference');
  }
  if (mode === 'D402') return refused(402, 'declined');
  if (mode === 'SAVED_500' && script?.effect === false) return refused(500, 'internal_error');
  const done: Decision = { status: 200, error: null, id: newId(), replayed: false, effect: true, landAt: null };
  if (mode === 'SAVED_500') return { ...done, status: 500, error: 'internal_error' };
  if (mode === 'LATE_LANDING') return { ...done, effect: false, landAt: call.at + (script?.delayMs ?? 0) };
  return done;
}

function repeatOf(first: Entry, call: Call): Decision {
  if (first.digest !== call.digest) return refused(422, 'idempotency_key_reused');
  if (first.landAt !== null) return refused(409, 'in_progress');
  const status = storedStatus(first);
  const error = status === 200 ? null : status === 402 ? 'declined' : 'internal_error';
  return { status, error, id: first.id, replayed: true, effect: false, landAt: null };
}
