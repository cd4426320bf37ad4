import type { PublicCaseId } from './registry.js';

export interface NotBuilt {
  readonly case: PublicCaseId;
  /** `none`: no test can show it yet. `part`: the rest of the case is tested here. */
  readonly tested: 'none' | 'part';
  readonly edge: 'webhooks in' | 'approvals' | 'event subscription' | 'erasure API' | 'suspected duplicates';
  readonly missing: string;
}

/** What the product can't show yet. A line goes when its edge is built and its test is written. */
export const NOT_BUILT: readonly NotBuilt[] = [
  {
    case: '3',
    tested: 'part',
    edge: 'suspected duplicates',
    missing: 'a new revision for the same order with another amount is not flagged',
  },
  { case: '40a', tested: 'none', edge: 'webhooks in', missing: 'no endpoint takes a provider’s webhook' },
  { case: '40c', tested: 'none', edge: 'webhooks in', missing: 'no endpoint takes a provider’s webhook' },
  { case: '40f', tested: 'part', edge: 'approvals', missing: 'approve and reject; the same rule is tested on the decisions of a review' },
  { case: '40g', tested: 'none', edge: 'approvals', missing: 'an operation can’t be held for approval' },
  { case: '40i', tested: 'part', edge: 'event subscription', missing: 'a reader that resumes a subscription' },
  { case: '40k', tested: 'part', edge: 'erasure API', missing: 'a call that destroys a key; the tests destroy it at the store' },
];
