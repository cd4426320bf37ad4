import type { LoadedOperation } from '../operation/handle-command.js';
import type { KnownOperation } from '../operation/state.js';
import type { DataKey } from './sealer.js';

/**
 * Room for an attempt in this very process. A command API that has a dispatcher beside it takes a slot before it appends, and then
 * appends plan and claim as one; without a lane, or with a full one, the operation is only planned and becomes due work.
 */
export interface AttemptLane {
  /** A slot at the provider, or null where it is busy, limited, or not to be called now. */
  reserve(provider: string): AttemptSlot | null;
}

export interface AttemptSlot {
  /** Names this process in the claim. */
  readonly worker: string;
  /** Makes the claimed call in the background; the slot is released when it is done. */
  run(claimed: ClaimedAttempt): void;
  /** Gives the slot back unused. */
  release(): void;
}

export interface ClaimedAttempt {
  readonly operation: LoadedOperation & { readonly state: KnownOperation };
  readonly payload: unknown;
  readonly dataKey: DataKey;
}
