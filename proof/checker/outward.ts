import type { Finding, Invariant, World } from './facts.js';

/** I10: every event is on the topic at least once with its own id, in order per operation, and nothing else is. */
const publication: Invariant = {
  id: 'I10',
  name: 'Publication',
  needs: ['log', 'topic', 'quiescent'],
  check({ facts, operations }) {
    const findings: Finding[] = [];
    const events = new Map(facts.log!.map((event) => [event.id, event]));
    const published = new Set<string>();
    const last = new Map<string, { revision: number; partition: number }>();
    for (const { eventId, operationId, revision, partition } of inOrder(facts.topic!)) {
      const event = events.get(eventId);
      if (!event) findings.push({ what: `the topic has event ${eventId}, which the log does not have`, operationId });
      else if (event.revision !== revision) findings.push({ what: `event ${eventId} was published as revision ${revision}`, operationId });
      const before = last.get(operationId) ?? { revision: -1, partition };
      if (before.partition !== partition)
        findings.push({ what: `events stand in partitions ${before.partition} and ${partition}`, operationId });
      if (published.has(eventId)) continue;
      published.add(eventId);
      // After what came again is taken out, each operation's events follow each other.
      if (revision !== before.revision + 1)
        findings.push({ what: `revision ${revision} was published after ${before.revision}`, operationId });
      last.set(operationId, { revision, partition });
    }
    for (const { operationId, stream } of operations.values()) {
      const missing = stream.filter(({ id }) => !published.has(id));
      if (missing.length > 0) findings.push({ what: `${missing.length} events never reached the topic`, operationId });
    }
    return findings;
  },
};

function inOrder(topic: NonNullable<World['facts']['topic']>) {
  return [...topic].sort((one, other) => one.partition - other.partition || one.offset - other.offset);
}

/** I11: whatever a subscriber has moved past was handed to it. */
const noSkip: Invariant = {
  id: 'I11',
  name: 'No skip',
  needs: ['log', 'subscribers'],
  check: ({ facts }) =>
    facts.subscribers!.flatMap(({ name, cursor, delivered }) =>
      facts
        .log!.filter(({ position }) => position <= cursor && !delivered.has(position))
        .map(({ position, stream }) => ({
          what: `${name} is past position ${position} and was never handed it`,
          operationId: stream.slice('operation-'.length),
        })),
    ),
};

/** I12: nothing of one tenant stands in another's stream, record or answer. */
const isolation: Invariant = {
  id: 'I12',
  name: 'Isolation',
  needs: ['log'],
  check({ facts, operations }) {
    const findings: Finding[] = [];
    for (const { operationId, stream } of operations.values()) {
      const tenants = new Set(stream.map(({ metadata }) => metadata.tenant));
      if (tenants.size > 1) findings.push({ what: `events of ${tenants.size} tenants in one stream`, operationId });
    }
    const owner = (operationId: string) => operations.get(operationId)?.stream[0]?.metadata.tenant;
    for (const { operationId, tenant } of [...(facts.topic ?? []), ...(facts.acknowledged ?? [])]) {
      const own = owner(operationId);
      if (own !== undefined && own !== tenant) findings.push({ what: `told to tenant ${tenant}, and it is of ${own}`, operationId });
    }
    for (const { tenant, text } of facts.answers ?? []) {
      for (const [other, marks] of Object.entries(facts.tenantMarks ?? {})) {
        if (other !== tenant && marks.some((mark) => text.includes(mark)))
          findings.push({ what: `an answer to ${tenant} holds a text of ${other}` });
      }
    }
    return findings;
  },
};

/** I13: planted secrets and planted personal data stand nowhere in the clear. */
const noLeak: Invariant = {
  id: 'I13',
  name: 'No leak',
  needs: ['canaries', 'log'],
  check({ facts }) {
    const texts = [
      ...facts.log!.map(({ event, metadata, stream }) => ({
        source: 'an event',
        text: JSON.stringify([event, metadata]),
        operationId: stream.slice('operation-'.length),
      })),
      ...(facts.topic ?? []).map(({ text, operationId }) => ({ source: 'a topic record', text, operationId })),
      ...(facts.captured ?? []).map(({ source, text }) => ({ source, text, operationId: null })),
    ];
    // The canary itself is not repeated: this report may end where the text must not.
    return texts
      .filter(({ text }) => facts.canaries!.some((canary) => text.includes(canary)))
      .map(({ source, operationId }) => ({ what: `a canary stands in ${source}`, operationId }));
  },
};

/** I15: once the faults are over, everything is settled within a bound. */
const progress: Invariant = {
  id: 'I15',
  name: 'Progress',
  needs: ['progress'],
  check({ facts }) {
    const { settledAfterMs, boundMs, watchdogAlarms } = facts.progress!;
    const findings: Finding[] = [];
    if (settledAfterMs === null) findings.push({ what: `not settled within ${boundMs} ms` });
    else if (settledAfterMs > boundMs) findings.push({ what: `settled after ${settledAfterMs} ms, and ${boundMs} ms are allowed` });
    if (watchdogAlarms > 0) findings.push({ what: `the watchdog has sounded ${watchdogAlarms} times` });
    return findings;
  },
};

/** I16: to read history again causes nothing. */
const pureReplay: Invariant = {
  id: 'I16',
  name: 'Pure replay',
  needs: ['replay'],
  check({ facts }) {
    const { calls, lookUps, webhooks } = facts.replay!;
    return calls + lookUps + webhooks === 0 ? [] : [{ what: `a replay made ${calls} calls, ${lookUps} look-ups and ${webhooks} webhooks` }];
  },
};

export const outwardInvariants: readonly Invariant[] = [publication, noSkip, isolation, noLeak, progress, pureReplay];
