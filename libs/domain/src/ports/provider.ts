import type { AttemptOutcome, CheckOutcome } from '../outcome/attempt-outcome.js';
import type { Identity } from '../operation/events.js';

/** One request to a provider: what the attempt is for, and how long it may take. */
export interface ProviderCall {
  readonly operationId: string;
  readonly providerKey: string;
  readonly actionType: string;
  readonly tenant: string;
  readonly identity: Identity;
  readonly attempt: number;
  /** The payload as it was submitted. */
  readonly payload: unknown;
  /** Longest the whole exchange may take, so that it ends inside the lease; never above the provider's own timeout. */
  readonly timeoutMs: number;
}

/** What an attempt told; the result is plain and is sealed by the caller. */
export type ProviderAnswer =
  | Exclude<AttemptOutcome, { kind: 'succeeded' }>
  | {
      readonly kind: 'succeeded';
      readonly providerOperationId: string | null;
      readonly result: unknown;
      readonly responseDigest: string | null;
    };

export interface LookupAnswer extends Omit<CheckOutcome, 'result'> {
  readonly result: unknown;
}

/**
 * One provider as declared in the catalogue. An adapter makes exactly one request on the wire per `call` (no retry, no redirect),
 * never throws for anything the provider or the network does, and reports `unknown` for whatever it is not certain of.
 */
export interface ProviderAdapter {
  call(request: ProviderCall): Promise<ProviderAnswer>;
  /** Asks what became of the operation; present only where the catalogue declares a look-up. */
  readonly lookUp?: (request: ProviderCall) => Promise<LookupAnswer>;
  close(): Promise<void>;
}
