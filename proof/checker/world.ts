import { absentOperation, foldRecorded, streamOf, type KnownOperation, type RecordedEvent } from '#domain';
import type { Facts, LedgerCall, OperationFacts, World } from './facts.js';

const STREAM_PREFIX = streamOf('');

/** Puts streams and ledger calls side by side. A call belongs to the operation whose provider key or business reference it carries. */
export function worldOf(facts: Facts): World {
  const streams = new Map<string, RecordedEvent[]>();
  for (const event of facts.log ?? []) {
    const operationId = operationIdOf(event.stream);
    const stream = streams.get(operationId);
    if (stream) stream.push(event);
    else streams.set(operationId, [event]);
  }
  const owners = ownersOf(streams, facts);
  const calls = new Map<string, LedgerCall[]>();
  const strayCalls: LedgerCall[] = [];
  for (const call of facts.ledger ?? []) {
    const owner = owners.get(`key ${call.providerKey}`) ?? owners.get(`reference ${call.businessReference}`);
    if (owner === undefined) strayCalls.push(call);
    else calls.set(owner, [...(calls.get(owner) ?? []), call]);
  }
  const operations = new Map<string, OperationFacts>();
  for (const [operationId, stream] of streams) {
    const { state } = foldRecorded(absentOperation(streamOf(operationId)), stream);
    const known: KnownOperation | null = state.status === 'absent' ? null : state;
    operations.set(operationId, { operationId, stream, state: known, calls: calls.get(operationId) ?? [] });
  }
  return { facts, operations, strayCalls };
}

function ownersOf(streams: ReadonlyMap<string, readonly RecordedEvent[]>, facts: Facts): Map<string, string> {
  const owners = new Map<string, string>();
  for (const { operationId, businessReference } of facts.acknowledged ?? []) {
    if (businessReference) owners.set(`reference ${businessReference}`, operationId);
  }
  for (const [operationId, [first]] of streams) {
    if (first?.event.type === 'OperationPlanned') owners.set(`key ${first.event.data.provider_key}`, operationId);
  }
  return owners;
}

export function operationIdOf(stream: string): string {
  return stream.slice(STREAM_PREFIX.length);
}

/** Operation, stream and ledger side by side. Sealed parts are left out: they say nothing and change with every run. */
export function pictureOf({ facts, operations, strayCalls }: World, operationId: string | null): string {
  const operation = operationId === null ? undefined : operations.get(operationId);
  if (!operation) return strayCalls.length === 0 ? '' : `calls of no operation:\n${strayCalls.map(describeCall).join('\n')}`;
  const { state, stream, calls } = operation;
  const acknowledged = (facts.acknowledged ?? []).filter((command) => command.operationId === operationId);
  return [
    `operation ${operationId}: ${state ? describeState(state) : 'does not begin with OperationPlanned'}; acknowledged: ${acknowledged.map(({ command }) => command).join(', ') || 'nothing'}`,
    'stream:',
    ...stream.map(describeEvent),
    'ledger:',
    ...(calls.length === 0 ? ['  (no call)'] : calls.map(describeCall)),
  ].join('\n');
}

function describeState(state: KnownOperation): string {
  const { status, review, history, facts } = state;
  return `${status}${review ? `, review open (${review.reason})` : ''}, attempts ${history.count}, provider ${facts.provider}`;
}

const LEFT_OUT = new Set(['payload', 'result', 'payload_hash', 'idempotency_key', 'policy', 'identity', 'source', 'response_digest']);

export function describeEvent({ revision, event, metadata }: RecordedEvent): string {
  const told = Object.entries(event.data).filter(([name, value]) => value !== null && !LEFT_OUT.has(name));
  return `  ${revision} ${metadata.at.slice(11, 23)} ${event.type} ${told.map(([name, value]) => `${name}=${String(value)}`).join(' ')}`;
}

function describeCall({ atMs, mode, effect, id, providerKey }: LedgerCall): string {
  return `  ${new Date(atMs).toISOString().slice(11, 23)} ${mode} ${effect ? `EFFECT ${id}` : 'no effect'} key=${providerKey}`;
}
