import { checkInvariants, printViolation, type Facts, type InvariantId } from '../checker/check-invariants.js';
import { gatherFacts } from './facts.js';
import type { Node } from './node.js';
import { isSettled, read, submit, type Workload } from './workload.js';
import { eventually, NeverCame, type World } from './world.js';

export interface Finding {
  readonly kind: 'duplicate' | 'lost' | 'violation';
  readonly text: string;
}

export interface Verdict {
  readonly operations: number;
  readonly effects: number;
  readonly findings: readonly Finding[];
  /** Why the case could not be run here. */
  readonly skipped?: string;
}

/** One effect for each intent; what was acknowledged is there. The rest breaks a law of another kind. */
const KINDS: Readonly<Partial<Record<InvariantId, Finding['kind']>>> = { I1: 'duplicate', I2: 'lost' };

/** What these cases must be able to see: without one of them a case would say less than it claims. */
const CHECKED: readonly InvariantId[] = ['I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7', 'I8', 'I9', 'I13', 'I14'];

/** Brings the case to rest and holds what is recorded against the lab's ledger. */
export async function judge(world: World, node: Node, workload: Workload): Promise<Verdict> {
  const findings: Finding[] = [];
  let quiescent = true;
  try {
    await untilAtRest(world, node, workload);
  } catch (error) {
    if (!(error instanceof NeverCame)) throw error;
    quiescent = false;
    findings.push({ kind: 'violation', text: error.message });
  }
  const facts = await gatherFacts(world, workload, quiescent);
  findings.push(...findingsIn(facts));
  const effects = facts.ledger!.filter(({ effect }) => effect).length;
  return { operations: workload.intents.length, effects, findings };
}

export function findingsIn(facts: Facts): Finding[] {
  const { violations, checked } = checkInvariants(facts);
  const claimed: readonly InvariantId[] = facts.topic ? [...CHECKED, 'I10'] : CHECKED;
  const unchecked = claimed.filter((id) => !checked.includes(id) && facts.quiescent);
  return [
    ...violations.map((violation): Finding => ({ kind: KINDS[violation.invariant] ?? 'violation', text: printViolation(violation) })),
    ...unchecked.map((id): Finding => ({ kind: 'violation', text: `${id} could not be checked.` })),
  ];
}

/** Nothing more can come, neither from us nor from the lab. */
async function untilAtRest(world: World, node: Node, workload: Workload): Promise<void> {
  for (const intent of workload.intents) {
    await eventually(`The acknowledgement of ${intent.object}`, async () => ((await submit(node, intent)) ? true : null));
    await eventually(`The outcome of ${intent.object}`, async () => {
      const operation = await read(node, intent.operationId!);
      // An operation that is not found is lost, which is for the checker to say.
      return operation === null || isSettled(operation) ? true : null;
    });
  }
  await eventually('The last landing at the lab', async () => ((await world.totals()).pending_landings === 0 ? true : null));
  await eventually('The end of the log at every reader', async () => ((await world.feedsAreThrough()) ? true : null));
}
