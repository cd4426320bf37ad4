import type { CheckVerdict, Sealed } from '../operation/events.js';

/** What one attempt told, as an adapter may report it. Anything an adapter is not certain of is `unknown`. */
export type AttemptOutcome =
  | NotSent
  | {
      readonly kind: 'succeeded';
      readonly providerOperationId: string | null;
      readonly result: Sealed | null;
      readonly responseDigest: string | null;
    }
  | { readonly kind: 'failed'; readonly code: string; readonly reason: string }
  /** The provider rejected a repeated business reference. Proof of success only after an earlier ambiguous send. */
  | { readonly kind: 'already_done' }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null };

/** Nothing can have arrived (`reached` false), or the provider declares that it consumed nothing (`reached` true). */
export interface NotSent {
  readonly kind: 'not_sent';
  readonly code: string;
  readonly reached: boolean;
  readonly retryAfterMs: number | null;
}

/** What a look-up told. */
export interface CheckOutcome {
  readonly verdict: CheckVerdict;
  readonly code: string | null;
  readonly anomaly: 'two_matches' | 'other_amount' | null;
  readonly providerOperationId: string | null;
  readonly result: Sealed | null;
}
