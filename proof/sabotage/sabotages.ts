import type { InvariantId } from '../checker/check-invariants.js';
import type { Delivery } from '../simulation/bus.js';
import { SOUND_PARTS, type Parts } from '../simulation/parts.js';
import { MemoryViewTable, type Tail } from '../simulation/stores.js';
import * as logs from './log-sabotage.js';
import * as providers from './provider-sabotage.js';

/** A planted bug: one part of the simulated system, exchanged for a broken one. Nothing of it is in the product. */
export interface Sabotage {
  readonly name: string;
  readonly parts: Parts;
  /** Of these one at least has to notice. */
  readonly caughtBy: readonly InvariantId[];
}

const broken = (name: string, part: Partial<Parts>, ...caughtBy: InvariantId[]): Sabotage => ({
  name,
  parts: { ...SOUND_PARTS, ...part },
  caughtBy,
});

/** A reader that takes what is there and never looks back. */
const sequenceOnlyTail: Tail = (events, isVisible) => events.filter(isVisible);

const commitThenHandle: Delivery = async (handle, commit) => {
  await commit();
  await handle();
};

/** The last writer wins, be it the older one. */
class RegressingView extends MemoryViewTable {
  protected override isNewer(): boolean {
    return true;
  }
}

/** Planted bugs, each of which the checker has to catch. */
export const SABOTAGES: readonly Sabotage[] = [
  broken('no fence: an append ignores the revision it expects', { log: logs.noFence }, 'I6', 'I8', 'I7', 'I1'),
  broken('the log is read by sequence alone', { tail: sequenceOnlyTail }, 'I10', 'I11'),
  broken('a doubt is tried again', { log: logs.retryOnUnknown }, 'I1'),
  broken('the offset is committed before its records are handled', { delivery: commitThenHandle }, 'I11', 'I9', 'I3'),
  broken('time turns a doubt into a failure', { log: logs.failedByTime }, 'I4', 'I5', 'I8'),
  broken('the provider key is minted per attempt', { provider: providers.keyPerAttempt }, 'I1', 'I7'),
  broken('absence is trusted at once', { log: logs.absenceTrustedAtOnce }, 'I1', 'I5'),
  broken('a saved 500 is retried as failed', { provider: providers.savedErrorRetried }, 'I1', 'I4'),
  broken('"not sent" is claimed after a reset', { provider: providers.notSentAfterReset }, 'I1', 'I4'),
  broken('another payload passes for a repetition', { log: logs.duplicatePlanAccepted }, 'I7'),
  broken('the view goes back to an older revision', { viewTable: () => new RegressingView() }, 'I9'),
  broken("another's reference is taken for ours", { provider: providers.anothersReference }, 'I4'),
  broken('the lease is ignored', { log: logs.leaseIgnored }, 'I6', 'I1', 'I5'),
  broken('evidence and reviews are dropped', { log: logs.evidenceDropped }, 'I3', 'I4'),
  broken('silence is called failure', { provider: providers.silenceIsFailure }, 'I4'),
  broken('the client below retries by itself', { provider: providers.hiddenRetry }, 'I1', 'I6'),
  broken('a plan is acknowledged before it is stored', { log: logs.acknowledgedBeforeStored }, 'I2', 'I7'),
  broken('a refusal quotes the payload', { provider: providers.payloadQuoted }, 'I13'),
  broken('Retry-After is ignored', { log: logs.retryAfterIgnored }, 'I14'),
  broken('a decision does not say whose it is', { log: logs.decisionWithoutActor }, 'I17'),
];
