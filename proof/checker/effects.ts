import type { AcknowledgedCommand, Finding, Invariant, OperationFacts, World } from './facts.js';

const effectsOf = ({ calls }: OperationFacts) => calls.filter(({ effect }) => effect).length;

/** I1: in the provider's own ledger, at most one effect an operation; and none that nobody has ordered. */
const effects: Invariant = {
  id: 'I1',
  name: 'Effects',
  needs: ['ledger', 'log'],
  check: ({ operations, strayCalls }) => [
    ...[...operations.values()]
      .filter((operation) => effectsOf(operation) > 1)
      .map((operation) => ({ what: `${effectsOf(operation)} effects in the ledger`, operationId: operation.operationId })),
    ...strayCalls.filter(({ effect }) => effect).map(({ id }) => ({ what: `effect ${id} belongs to no operation` })),
  ],
};

/** I2: what was acknowledged is in the log, whoever reads it. */
const durability: Invariant = {
  id: 'I2',
  name: 'Durability',
  needs: ['acknowledged', 'log'],
  check: ({ facts, operations }) =>
    facts.acknowledged!.flatMap((command) =>
      isStored(operations.get(command.operationId), command)
        ? []
        : [{ what: `an acknowledged ${command.command} is not in the log`, operationId: command.operationId }],
    ),
};

function isStored(operation: OperationFacts | undefined, { command, decisionId, decision }: AcknowledgedCommand): boolean {
  return (
    operation?.stream.some(({ event }) => {
      if (command === 'plan') return event.type === 'OperationPlanned';
      if (command === 'cancel') return event.type === 'OperationCancelled';
      if (event.type !== 'ReviewDecided') return false;
      return event.data.decision === decision && (decisionId === undefined || event.data.decision_id === decisionId);
    }) ?? false
  );
}

/** I3: at rest each acknowledged command has come to exactly one of its three ends. */
const terminality: Invariant = {
  id: 'I3',
  name: 'Terminality',
  needs: ['acknowledged', 'log', 'quiescent'],
  check({ facts, operations }) {
    const planned = new Set(facts.acknowledged!.filter(({ command }) => command === 'plan').map(({ operationId }) => operationId));
    return [...planned].flatMap((operationId): Finding[] => {
      const operation = operations.get(operationId);
      if (!operation?.state) return [];
      const { status } = operation.state;
      const reviews = openReviews(operation);
      if (status === 'succeeded' || status === 'failed_final') {
        return reviews > 1 ? [{ what: `${reviews} reviews are open beside ${status}`, operationId }] : [];
      }
      if (status !== 'unknown') return [{ what: `still ${status} at rest`, operationId }];
      return reviews === 1 ? [] : [{ what: `unknown with ${reviews} open reviews`, operationId }];
    });
  },
};

/** Counted over the stream and not read from the fold, which can hold only one. */
function openReviews({ stream }: OperationFacts): number {
  let open = 0;
  for (const { event } of stream) {
    if (event.type === 'ReviewRequested') open++;
    // A review of a doubt ends with the doubt, also when nobody decided it.
    else if (['ReviewDecided', 'OperationSucceeded', 'OperationFailed', 'AttemptNotSent', 'OperationCancelled'].includes(event.type))
      open = 0;
  }
  return open;
}

/** I4: what was recorded is what the ledger says. */
const truth: Invariant = {
  id: 'I4',
  name: 'Truth',
  needs: ['ledger', 'log', 'quiescent'],
  check: ({ operations }) =>
    [...operations.values()].flatMap((operation): Finding[] => {
      const { state, operationId } = operation;
      const count = effectsOf(operation);
      if (!state) return [];
      if (state.status === 'succeeded')
        return count === 1 ? truthOfId(operation) : [{ what: `succeeded with ${count} effects`, operationId }];
      // Closed by a person without an answer: nobody claims that nothing happened. Seen later: an open review says so.
      const claimsNothing = state.status === 'failed_final' && state.code !== 'given_up' && !(state.history.provenEffect && state.review);
      if (claimsNothing && count > 0) return [{ what: `failed_final (${state.code}) with ${count} effects`, operationId }];
      return count > 1 ? [{ what: `${state.status} with ${count} effects`, operationId }] : [];
    }),
};

/** A success names the effect that the ledger has, and no other. */
function truthOfId({ state, calls, operationId }: OperationFacts): Finding[] {
  const id = state?.status === 'succeeded' ? state.providerOperationId : null;
  const known = calls.flatMap((call) => (call.effect && call.id !== null ? [call.id] : []));
  if (id === null || known.length === 0 || known.includes(id)) return [];
  return [{ what: `succeeded as ${id}, and the ledger has ${known.join(', ')}`, operationId }];
}

/** I7: one intent, one operation, one payload; a conflict is never carried out. */
const keyBinding: Invariant = {
  id: 'I7',
  name: 'Key binding',
  needs: ['log'],
  check: (world) => [...bindingOfStreams(world), ...bindingOfAnswers(world), ...bindingOfCalls(world)],
};

function bindingOfStreams({ operations }: World): Finding[] {
  const owners = new Map<string, string>();
  return [...operations.values()].flatMap(({ stream, operationId }): Finding[] => {
    const plans = stream.flatMap(({ event }) => (event.type === 'OperationPlanned' ? [event.data] : []));
    const [plan] = plans;
    if (!plan) return [];
    const findings: Finding[] = [];
    if (plans.length > 1) findings.push({ what: `planned ${plans.length} times`, operationId });
    if (plan.operation_id !== operationId) findings.push({ what: `planned as ${plan.operation_id}`, operationId });
    for (const name of [`key ${plan.idempotency_key}`, `provider key ${plan.provider_key}`]) {
      const owner = owners.get(name);
      if (owner !== undefined) findings.push({ what: `has the ${name.split(' ').slice(0, -1).join(' ')} of ${owner}`, operationId });
      owners.set(name, operationId);
    }
    return findings;
  });
}

function bindingOfAnswers({ facts, operations }: World): Finding[] {
  const byIntent = new Map<string, string>();
  return (facts.acknowledged ?? []).flatMap((command): Finding[] => {
    const { operationId, intent, tenant } = command;
    if (command.command !== 'plan') return [];
    const findings: Finding[] = [];
    const [first] = operations.get(operationId)?.stream ?? [];
    const stored = first?.event.type === 'OperationPlanned' ? first.event.data.payload_hash : null;
    for (const hash of [command.answeredHash, command.submittedHash]) {
      if (stored !== null && hash && hash !== stored) findings.push({ what: 'a submission with another payload was taken', operationId });
    }
    if (intent !== undefined) {
      const name = `${tenant} ${intent}`;
      const known = byIntent.get(name);
      if (known !== undefined && known !== operationId) findings.push({ what: `the same intent is also ${known}`, operationId });
      byIntent.set(name, operationId);
    }
    return findings;
  });
}

function bindingOfCalls({ operations, strayCalls }: World): Finding[] {
  return [
    ...strayCalls.map(({ providerKey }) => ({ what: `the provider was called under ${providerKey}, which no operation has` })),
    ...[...operations.values()].flatMap(({ calls, stream, operationId }): Finding[] => {
      const [first] = stream;
      const key = first?.event.type === 'OperationPlanned' ? first.event.data.provider_key : null;
      const otherKey = calls.find(({ providerKey }) => providerKey !== null && providerKey !== key);
      const digests = new Set(calls.flatMap(({ digest }) => digest ?? []));
      return [
        ...(otherKey ? [{ what: `a call went out under ${otherKey.providerKey} instead of ${key}`, operationId }] : []),
        ...(digests.size > 1 ? [{ what: 'calls of one operation differ in what they sent', operationId }] : []),
      ];
    }),
  ];
}

export const effectInvariants: readonly Invariant[] = [effects, durability, terminality, truth, keyBinding];
