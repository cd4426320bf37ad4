import { effectInvariants } from './effects.js';
import { evidenceInvariants } from './evidence.js';
import type { Facts, Invariant, InvariantId, Violation } from './facts.js';
import { outwardInvariants } from './outward.js';
import { streamInvariants } from './streams.js';
import { pictureOf, worldOf } from './world.js';

export * from './facts.js';

/** I1-I17 of the fault catalogue, in its order. */
export const INVARIANTS: readonly Invariant[] = [
  ...effectInvariants,
  ...streamInvariants,
  ...evidenceInvariants,
  ...outwardInvariants,
].sort((one, other) => Number(one.id.slice(1)) - Number(other.id.slice(1)));

export interface CheckReport {
  readonly violations: readonly Violation[];
  readonly checked: readonly InvariantId[];
  /** With the facts that were missing. */
  readonly notChecked: readonly { readonly invariant: InvariantId; readonly missing: readonly (keyof Facts)[] }[];
}

/** A law that is broken everywhere is told by some of its cases; the rest would only fill the screen. */
const VIOLATIONS_PER_INVARIANT_MAX = 20;

/** Holds every invariant against the facts. What it has no facts for is listed and not passed. */
export function checkInvariants(facts: Facts): CheckReport {
  const world = worldOf(facts);
  const violations: Violation[] = [];
  const checked: InvariantId[] = [];
  const notChecked: { invariant: InvariantId; missing: (keyof Facts)[] }[] = [];
  for (const { id, needs, check } of INVARIANTS) {
    const missing = needs.filter((need) => facts[need] === undefined || facts[need] === false);
    if (missing.length > 0) {
      notChecked.push({ invariant: id, missing });
      continue;
    }
    checked.push(id);
    for (const { what, operationId = null } of check(world).slice(0, VIOLATIONS_PER_INVARIANT_MAX)) {
      violations.push({ invariant: id, what, operationId, picture: pictureOf(world, operationId) });
    }
  }
  return { violations, checked, notChecked };
}

export function printViolation({ invariant, what, operationId, picture }: Violation): string {
  const name = INVARIANTS.find(({ id }) => id === invariant)?.name ?? '';
  return `${invariant} ${name}: ${what}${operationId === null ? '' : ` [${operationId}]`}\n${picture}`;
}
