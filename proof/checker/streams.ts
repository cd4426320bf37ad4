import { canonicalJson, evolve, initialState, type OperationEvent, type OperationState, type RecordedEvent } from '#domain';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { chainIsIntact } from '#adapters/event-store/encoding.js';
import type { Finding, Invariant, OperationFacts, ViewFact, World } from './facts.js';

type EventType = OperationEvent['type'];
type Situation = 'absent' | 'planned' | 'executing' | 'failed_retryable' | 'unknown' | 'final';

/** The state diagram of the design, once more and by hand: what may follow where. */
const LEGAL: Readonly<Record<Situation, Partial<Record<EventType, Situation | readonly Situation[]>>>> = {
  absent: { OperationPlanned: 'planned' },
  planned: { OperationCancelled: 'final', AttemptStarted: 'executing' },
  executing: {
    AttemptNotSent: ['failed_retryable', 'unknown'],
    OutcomeUnknown: 'unknown',
    OperationSucceeded: 'final',
    OperationFailed: 'final',
    EvidenceRecorded: 'executing',
  },
  failed_retryable: {
    AttemptStarted: 'executing',
    OutcomeUnknown: 'unknown',
    OperationSucceeded: 'final',
    OperationFailed: 'final',
    EvidenceRecorded: 'failed_retryable',
  },
  unknown: {
    AttemptStarted: 'executing',
    AttemptNotSent: ['failed_retryable', 'unknown'],
    OutcomeUnknown: 'unknown',
    CheckRequested: 'unknown',
    OutcomeChecked: 'unknown',
    ReviewRequested: 'unknown',
    ReviewDecided: 'unknown',
    OperationSucceeded: 'final',
    OperationFailed: 'final',
    EvidenceRecorded: 'unknown',
  },
  final: { EvidenceRecorded: 'final', ReviewRequested: 'final', ReviewDecided: 'final' },
};

/** I6: attempts are numbered without gaps, none begins while another is under way, and the provider gets no call without a claim. */
const singleFlight: Invariant = {
  id: 'I6',
  name: 'Single flight',
  needs: ['log'],
  check: ({ operations, facts }) =>
    [...operations.values()].flatMap((operation) => [...overlaps(operation), ...unclaimedCalls(operation, facts.skewMs)]),
};

function overlaps({ stream, operationId }: OperationFacts): Finding[] {
  const findings: Finding[] = [];
  let last = 0;
  let open: number | null = null;
  for (const { event } of stream) {
    if (event.type === 'AttemptStarted') {
      if (open !== null) findings.push({ what: `attempt ${event.data.attempt} began while attempt ${open} was under way`, operationId });
      if (event.data.attempt !== last + 1) findings.push({ what: `attempt ${event.data.attempt} follows attempt ${last}`, operationId });
      open = last = event.data.attempt;
    } else if (event.type === 'AttemptNotSent' || event.type === 'OutcomeUnknown') {
      if (event.data.attempt !== last)
        findings.push({ what: `an outcome of attempt ${event.data.attempt} overwrote attempt ${last}`, operationId });
      open = null;
    } else if (event.type === 'OperationSucceeded' || event.type === 'OperationFailed') open = null;
  }
  return findings;
}

function unclaimedCalls({ stream, calls, operationId }: OperationFacts, skewMs: number | undefined): Finding[] {
  const claims = stream.flatMap(({ event, metadata }) =>
    event.type === 'AttemptStarted' ? [{ from: Date.parse(metadata.at), until: Date.parse(event.data.lease_until) }] : [],
  );
  const findings: Finding[] = [];
  if (calls.length > claims.length) findings.push({ what: `${calls.length} calls on ${claims.length} claims`, operationId });
  if (skewMs === undefined) return findings;
  for (const { atMs } of calls) {
    const covered = claims.some(({ from, until }) => atMs >= from - skewMs && atMs <= until + skewMs);
    if (!covered) findings.push({ what: `the call at ${new Date(atMs).toISOString()} lies in no lease`, operationId });
  }
  return findings;
}

/** I8: revisions without gaps from 0, only what the state diagram has, and hashes that still come out. */
const streams: Invariant = {
  id: 'I8',
  name: 'Streams',
  needs: ['log'],
  check: ({ operations }) => [...operations.values()].flatMap((operation) => streamFindings(operation)),
};

function streamFindings({ stream, operationId }: OperationFacts): Finding[] {
  const findings: Finding[] = [];
  const gap = stream.findIndex(({ revision }, index) => revision !== index);
  if (gap >= 0) findings.push({ what: `revision ${stream[gap]!.revision} stands where ${gap} should`, operationId });
  const illegal = firstIllegal(stream);
  if (illegal !== null) findings.push({ what: illegal, operationId });
  if (!chainIsIntact(nodeHashing, stream)) findings.push({ what: 'the hash chain does not verify', operationId });
  return findings;
}

function firstIllegal(stream: readonly RecordedEvent[]): string | null {
  let situation: Situation = 'absent';
  let state: OperationState = initialState;
  for (const { event, metadata, revision } of stream) {
    const to: Situation | readonly Situation[] | undefined = LEGAL[situation][event.type];
    if (to === undefined) return `${event.type} at revision ${revision} is not legal when ${situation}`;
    state = evolve(state, event, { tenant: metadata.tenant, atMs: Date.parse(metadata.at), revision });
    const folded: Situation = state.status === 'succeeded' || state.status === 'failed_final' ? 'final' : state.status;
    if (!(typeof to === 'string' ? [to] : to).includes(folded))
      return `${event.type} at revision ${revision} led from ${situation} to ${folded}`;
    situation = folded;
  }
  return null;
}

/** I9: each row is the fold of its stream, at rest of the whole stream; and built anew it comes out the same. */
const view: Invariant = {
  id: 'I9',
  name: 'View',
  needs: ['log', 'view'],
  check(world) {
    const { view: rows, rebuiltView } = world.facts;
    return [...differences(world, rows!, 'the view'), ...(rebuiltView ? differences(world, rebuiltView, 'the rebuilt view') : [])];
  },
};

function differences({ operations, facts }: World, rows: readonly ViewFact[], name: string): Finding[] {
  const findings: Finding[] = [];
  const seen = new Set<string>();
  for (const { operationId, revision, state } of rows) {
    seen.add(operationId);
    const stream = operations.get(operationId)?.stream;
    if (!stream) findings.push({ what: `${name} has a row that the log does not have`, operationId });
    else if (facts.quiescent && revision !== stream.length - 1) {
      findings.push({ what: `${name} stands at revision ${revision} of ${stream.length - 1}`, operationId });
    } else if (canonicalJson(state) !== canonicalJson(foldTo(stream, revision))) {
      findings.push({ what: `${name} differs from the fold at revision ${revision}`, operationId });
    }
  }
  if (facts.quiescent) {
    for (const { operationId, state } of operations.values()) {
      if (state && !seen.has(operationId)) findings.push({ what: `${name} has no row`, operationId });
    }
  }
  return findings;
}

function foldTo(stream: readonly RecordedEvent[], last: number): OperationState {
  let state = initialState;
  for (const { event, metadata, revision } of stream) {
    if (revision > last) break;
    state = evolve(state, event, { tenant: metadata.tenant, atMs: Date.parse(metadata.at), revision });
  }
  return state;
}

export const streamInvariants: readonly Invariant[] = [singleFlight, streams, view];
