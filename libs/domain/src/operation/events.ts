/**
 * What can happen to an operation: one intended external effect, kept as one stream of these events.
 *
 * The names and shapes here are permanent. A change of meaning gets a new type name; a stored event is never rewritten.
 * `data` is what is stored: snake_case, RFC 3339 UTC times, sealed parts as opaque tokens (see `Sealed`).
 * Read on in `state.ts` (what is known), `decide.ts` (what may happen) and `next-step.ts` (what to do now).
 */
export type OperationEvent =
  | OperationPlanned
  | OperationCancelled
  | AttemptStarted
  | AttemptNotSent
  | OutcomeUnknown
  | CheckRequested
  | OutcomeChecked
  | OperationSucceeded
  | OperationFailed
  | ReviewRequested
  | ReviewDecided
  | EvidenceRecorded;

/** RFC 3339 UTC with milliseconds, for example `2026-01-05T10:00:01.000Z`. */
export type Timestamp = string;

/** Ciphertext token made by a `Sealer`; unreadable once the operation's data key is destroyed. */
export type Sealed = string;

/** The intent is recorded under its identity; nothing has been tried yet. First event of each stream. */
export interface OperationPlanned {
  readonly type: 'OperationPlanned';
  readonly data: {
    readonly operation_id: string;
    readonly idempotency_key: string;
    readonly action_type: string;
    readonly identity: Identity;
    readonly payload_hash: string;
    readonly payload: Sealed;
    readonly provider: string;
    /** What the provider sees as idempotency key or reference: the same for every attempt, never recomputed. */
    readonly provider_key: string;
    readonly policy: OperationPolicy;
    readonly source: Source | null;
    /** The `Idempotency-Key` header, when the business fields decided and the header was only an alias. */
    readonly client_key: string | null;
  };
}

/** Stopped before any attempt. Final. */
export interface OperationCancelled {
  readonly type: 'OperationCancelled';
  readonly data: { readonly reason: string };
}

/** The claim: whoever appended this event, at the revision it had read, may make this one call until the lease ends. */
export interface AttemptStarted {
  readonly type: 'AttemptStarted';
  readonly data: {
    readonly attempt: number;
    readonly attempt_id: string;
    readonly worker: string;
    readonly lease_seconds: number;
    readonly lease_until: Timestamp;
    /** Until when the provider still recognises the key of the first send; null where no window applies. */
    readonly safe_retry_until: Timestamp | null;
  };
}

/** Nothing can have reached the provider, or the provider declares that it consumed nothing. */
export interface AttemptNotSent {
  readonly type: 'AttemptNotSent';
  readonly data: {
    readonly attempt: number;
    readonly code: string;
    /** True where the provider answered (429 ...), so that it has seen the key; false where no byte can have arrived. */
    readonly reached: boolean;
    readonly retry_at: Timestamp;
  };
}

/** The request may have arrived. Not an error: it is looked up, settled by evidence, or decided by a person. */
export interface OutcomeUnknown {
  readonly type: 'OutcomeUnknown';
  readonly data: {
    readonly attempt: number;
    readonly code: string;
    /** HTTP status, where the provider answered with one. */
    readonly status: number | null;
    /** When it is looked into next; null when only a person can. */
    readonly next_check_at: Timestamp | null;
  };
}

/** A person asked to ask the provider now. */
export interface CheckRequested {
  readonly type: 'CheckRequested';
  readonly data: { readonly reason: string | null };
}

/** The provider was asked what became of the operation. */
export interface OutcomeChecked {
  readonly type: 'OutcomeChecked';
  readonly data: {
    readonly verdict: CheckVerdict;
    /** With `absent`: whether it proves that no request sent so far has taken or can still take effect. */
    readonly proof: boolean;
    readonly code: string | null;
    /** Something that only a person can judge: `two_matches`, `other_amount`. */
    readonly anomaly: string | null;
    readonly next_check_at: Timestamp | null;
  };
}

export type CheckVerdict = 'present' | 'absent' | 'refused' | 'inconclusive';

/** The effect exists. Final. */
export interface OperationSucceeded {
  readonly type: 'OperationSucceeded';
  readonly data: {
    readonly attempt: number;
    readonly provider_operation_id: string | null;
    readonly result: Sealed | null;
    readonly response_digest: string | null;
    readonly evidence: EvidenceKind;
  };
}

/** The effect does not exist and will not come from here. Final. */
export interface OperationFailed {
  readonly type: 'OperationFailed';
  readonly data: { readonly attempt: number; readonly code: string; readonly reason: string; readonly evidence: EvidenceKind };
}

/** What told the outcome. `budget` and `already_done` are conclusions from what was declared. */
export type EvidenceKind = 'response' | 'late_response' | 'already_done' | 'lookup' | 'webhook' | 'person' | 'budget';

/** A person has to decide. At most one review is open at a time. */
export interface ReviewRequested {
  readonly type: 'ReviewRequested';
  readonly data: { readonly reason: string };
}

/** A person's verdict; the first one wins. */
export interface ReviewDecided {
  readonly type: 'ReviewDecided';
  readonly data: {
    readonly decision: ReviewDecision;
    readonly decision_id: string | null;
    readonly actor: string;
    readonly reason: string;
    readonly evidence: string | null;
    readonly based_on_revision: number;
  };
}

export const REVIEW_DECISIONS = ['happened', 'did_not_happen', 'retry_once', 'give_up', 'acknowledge'] as const;
export type ReviewDecision = (typeof REVIEW_DECISIONS)[number];

/** Late or repeated evidence. It changes no state; when it contradicts one, a review is opened beside it. */
export interface EvidenceRecorded {
  readonly type: 'EvidenceRecorded';
  readonly data: {
    readonly attempt: number;
    readonly kind: EvidenceKind;
    readonly verdict: 'succeeded' | 'failed' | 'not_sent' | 'unknown';
    readonly code: string | null;
    readonly provider_operation_id: string | null;
    readonly contradicts: boolean;
  };
}

/** 1-8 fields that name the business intent: strings or safe integers. */
export type Identity = Readonly<Record<string, string | number>>;

/** Where the request came from. Recorded, never part of the identity. */
export type Source = Readonly<Record<string, string | number | boolean | null>>;

/**
 * The numbers in force for one operation, taken from the catalogue when it was planned and never changed under it, so that every
 * decision can be replayed from the stream alone. Durations in milliseconds.
 */
export interface OperationPolicy {
  readonly max_attempts: number;
  readonly backoff: Backoff;
  readonly lease_ms: number;
  /** Ways out of `unknown`, in order. */
  readonly on_unknown: readonly ('lookup' | 'same_key_retry' | 'review')[];
  /**
   * Why a repeated send is harmless: `key`, the provider honours our key for `retention_ms`; `reference`, it rejects a repeated
   * business reference; null, it is not.
   */
  readonly same_key:
    | { readonly by: 'key'; readonly retention_ms: number; readonly margin_ms: number; readonly repeats_stored_errors: boolean }
    | { readonly by: 'reference' }
    | null;
  readonly lookup: LookupPolicy | null;
}

export interface LookupPolicy {
  /** A consistent look-up sees each effect at once; otherwise after `visibility_lag_ms`. */
  readonly consistent: boolean;
  readonly visibility_lag_ms: number;
  /** Longest time after its sending in which a request may still take effect. */
  readonly landing_ms: number;
  readonly first_check_ms: number;
  readonly max_checks: number;
  readonly backoff: Backoff;
}

/** Exponential: `initial_ms * factor^(n-1)`, at most `max_ms`; see `retry-policy.ts` for the jitter. */
export interface Backoff {
  readonly initial_ms: number;
  readonly factor: number;
  readonly max_ms: number;
}
