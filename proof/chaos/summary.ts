import type { RecordedEvent } from '#domain';
import { checkInvariants, printViolation, type Facts } from '../checker/check-invariants.js';
import { worldOf } from '../checker/world.js';
import type { Damage } from './director.js';

export interface Summary extends Damage {
  readonly seed: number;
  /** Submitted, and of them acknowledged; the others got no answer before the end. */
  readonly operations: number;
  readonly acknowledged: number;
  readonly effects: number;
  /** Operations with a second effect. */
  readonly duplicates: number;
  /** Acknowledged commands that are not in the log. */
  readonly lost: number;
  /** Operations in doubt at the end, and reviews that are open. */
  readonly unknown: number;
  readonly reviews: number;
  readonly succeeded: number;
  readonly failed_final: number;
  readonly decided_by_people: number;
  /** Requests of callers that got no answer, or "not now". */
  readonly unanswered_requests: number;
  /** The longest time, while operations were being submitted, in which nothing was recorded of any attempt. */
  readonly longest_stall_ms: number;
  /** From the last fault until nothing was under way; null where that did not come in time. */
  readonly settled_after_ms: number | null;
  readonly violations: number;
  readonly checked: readonly string[];
  readonly not_checked: readonly string[];
  readonly seconds: number;
}

interface Told extends Damage {
  readonly seed: number;
  readonly operations: number;
  readonly unanswered_requests: number;
  readonly seconds: number;
  /** Answers of the API that broke its rules, a sentence each. */
  readonly findings: readonly string[];
}

/** Holds the facts against every invariant. Each violation is told with its operation, stream and ledger. */
export function summarize(facts: Facts, { findings, ...told }: Told, tell: (text: string) => void): Summary {
  const { violations, checked, notChecked } = checkInvariants(facts);
  for (const violation of violations) tell(printViolation(violation));
  for (const finding of findings) tell(finding);
  const broken = (id: string) => violations.filter(({ invariant }) => invariant === id).length;
  const states = [...worldOf(facts).operations.values()].flatMap(({ state }) => state ?? []);
  const count = (status: string) => states.filter((state) => state.status === status).length;
  const acknowledged = facts.acknowledged!;
  return {
    ...told,
    acknowledged: new Set(acknowledged.flatMap(({ command, operationId }) => (command === 'plan' ? [operationId] : []))).size,
    effects: facts.ledger!.filter(({ effect }) => effect).length,
    duplicates: broken('I1'),
    lost: broken('I2'),
    unknown: count('unknown'),
    reviews: states.filter(({ review }) => review !== null).length,
    succeeded: count('succeeded'),
    failed_final: count('failed_final'),
    decided_by_people: acknowledged.filter(({ command }) => command === 'decide').length,
    longest_stall_ms: longestStallMs(facts.log!),
    settled_after_ms: facts.progress!.settledAfterMs,
    violations: violations.length - broken('I1') - broken('I2') + findings.length,
    checked,
    not_checked: notChecked.map(({ invariant, missing }) => `${invariant} (${missing.join(', ')})`),
  };
}

function longestStallMs(log: readonly RecordedEvent[]): number {
  const timesOf = (isWanted: (type: string) => boolean) =>
    log.flatMap(({ event, metadata }) => (isWanted(event.type) ? [Date.parse(metadata.at)] : [])).sort((one, other) => one - other);
  const planned = timesOf((type) => type === 'OperationPlanned');
  const [first, last] = [planned[0] ?? 0, planned.at(-1) ?? 0];
  const done = timesOf((type) => type !== 'OperationPlanned').filter((atMs) => atMs > first && atMs < last);
  const marks = [first, ...done, last];
  return marks.reduce((longest, atMs, index) => Math.max(longest, atMs - (marks[index - 1] ?? atMs)), 0);
}
