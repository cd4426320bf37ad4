import type { AttemptOutcome, CheckOutcome } from '#domain';
import { policies, type ProviderClass, VISIBILITY_LAG_MS } from './policies.js';

/** What befalls one call on its way. Whatever a fault hides from the worker, the ledger shows. */
export type CallFault =
  /** Answered. */
  | 'none'
  /** Taken, and the answer lost. */
  | 'lost_answer'
  /** On its way when the worker stops waiting; lands after `delayMs`, at most the declared landing time. */
  | 'late_landing'
  | 'lost_request'
  | 'not_reached'
  | 'too_many'
  /** The provider's own fault: 500, after the effect or before it. */
  | 'error_after'
  | 'error_before'
  /** The provider declines for a reason of the moment. */
  | 'declined'
  /** Declined, and the answer lost. */
  | 'declined_lost';

export const CALL_FAULTS: readonly CallFault[] = [
  ...(['none', 'lost_answer', 'late_landing', 'lost_request', 'not_reached', 'too_many'] as const),
  ...(['error_after', 'error_before', 'declined', 'declined_lost'] as const),
];

interface Effect {
  readonly id: string;
  readonly landedAtMs: number;
}

type Answer = { readonly kind: 'done'; readonly id: string } | { readonly kind: 'declined' | 'error' | 'duplicate' };

const TIMEOUT: AttemptOutcome = { kind: 'unknown', code: 'timeout', status: null };

/**
 * A provider that keeps exactly what its class declares, and no more: keys for as long as its retention, of successes only or of errors
 * too; a look-up at once or late; duplicates rejected or not. Its ledger is the truth.
 */
export class ModelProvider {
  readonly effects: Effect[] = [];
  private readonly onTheirWay: { readonly arrivesAtMs: number; readonly fault: CallFault }[] = [];
  private kept: { readonly answer: Answer; readonly sinceMs: number } | null = null;

  constructor(private readonly providerClass: ProviderClass) {}

  /** One request under the operation's key, and what the worker gets to know of it. */
  call(nowMs: number, fault: CallFault, delayMs: number): AttemptOutcome {
    switch (fault) {
      case 'not_reached':
        return { kind: 'not_sent', code: 'connection_refused', reached: false, retryAfterMs: null };
      case 'too_many':
        return { kind: 'not_sent', code: 'http_429', reached: true, retryAfterMs: delayMs };
      case 'lost_request':
        return TIMEOUT;
      case 'late_landing':
        this.onTheirWay.push({ arrivesAtMs: nowMs + delayMs, fault });
        return TIMEOUT;
      default: {
        const answer = this.take(nowMs, fault);
        return fault === 'lost_answer' || fault === 'declined_lost' ? TIMEOUT : outcomeOf(answer);
      }
    }
  }

  /** Lets time pass: what was on its way lands. */
  passTo(nowMs: number): void {
    for (const { arrivesAtMs, fault } of this.onTheirWay.filter(({ arrivesAtMs }) => arrivesAtMs <= nowMs)) this.take(arrivesAtMs, fault);
    this.onTheirWay.splice(0, Infinity, ...this.onTheirWay.filter(({ arrivesAtMs }) => arrivesAtMs > nowMs));
  }

  lookUp(nowMs: number): CheckOutcome {
    const lagMs = this.providerClass === 'd' ? VISIBILITY_LAG_MS : 0;
    const visible = this.effects.filter(({ landedAtMs }) => landedAtMs + lagMs <= nowMs);
    const answer = { code: null, anomaly: null, providerOperationId: null, result: null };
    if (visible.length > 1) return { ...answer, verdict: 'inconclusive', anomaly: 'two_matches' };
    if (visible[0]) return { ...answer, verdict: 'present', providerOperationId: visible[0].id };
    return { ...answer, verdict: this.kept?.answer.kind === 'declined' ? 'refused' : 'absent' };
  }

  private take(nowMs: number, fault: CallFault): Answer {
    const { same_key } = policies[this.providerClass];
    if (same_key?.by === 'key') {
      if (this.kept && nowMs < this.kept.sinceMs + same_key.retention_ms) return this.kept.answer;
      const answer = this.act(nowMs, fault);
      // A failure after the effect is a success under the key, unless errors are kept as they were answered.
      const keep = same_key.repeats_stored_errors ? answer : this.lastSuccess(nowMs);
      if (keep) this.kept = { answer: keep, sinceMs: nowMs };
      return answer;
    }
    if (same_key?.by === 'reference' && this.effects.length > 0) return { kind: 'duplicate' };
    return this.act(nowMs, fault);
  }

  private act(nowMs: number, fault: CallFault): Answer {
    if (fault === 'declined' || fault === 'declined_lost') return { kind: 'declined' };
    if (fault === 'error_before') return { kind: 'error' };
    const effect = { id: `effect-${this.effects.length + 1}`, landedAtMs: nowMs };
    this.effects.push(effect);
    return fault === 'error_after' ? { kind: 'error' } : { kind: 'done', id: effect.id };
  }

  private lastSuccess(nowMs: number): Answer | null {
    const effect = this.effects.find(({ landedAtMs }) => landedAtMs === nowMs);
    return effect ? { kind: 'done', id: effect.id } : null;
  }
}

function outcomeOf(answer: Answer): AttemptOutcome {
  switch (answer.kind) {
    case 'done':
      return { kind: 'succeeded', providerOperationId: answer.id, result: null, responseDigest: null };
    case 'declined':
      return { kind: 'failed', code: 'http_402', reason: 'The provider refused with status 402.' };
    case 'error':
      return { kind: 'unknown', code: 'server_error', status: 500 };
    case 'duplicate':
      return { kind: 'already_done' };
  }
}
