import { handleCommand, type CheckOutcome, type KnownOperation, type LoadedOperation, type LookupAnswer, type ProviderCall } from '#domain';
import { openPayload } from './open-payload.js';
import type { Doubts } from './doubts.js';
import { providerCall } from './provider-call.js';
import type { DispatcherPorts } from './ports.js';
import type { Health, ProviderGate } from './provider-gate.js';

type Loaded = LoadedOperation & { readonly state: KnownOperation };

/** Asks the provider what became of an operation and records the answer. Never throws; the gate's slot is given back in the end. */
export async function lookUp(ports: DispatcherPorts, doubts: Doubts, loaded: Loaded, gate: ProviderGate): Promise<void> {
  const { facts, history } = loaded.state;
  let health: Health = 'unclear';
  try {
    // A look-up may well do without the payload; where its request needs it, the adapter says so and a person decides in the end.
    const found = await openPayload(ports, loaded);
    const opened = typeof found === 'string' ? null : found;
    const askedAtMs = ports.clock.nowMs();
    const doubtAgeMs = doubts.ageMs(facts.operationId, history.count);
    const request = providerCall(loaded.state, opened?.payload ?? null, gate.provider.timeoutMs);
    const answer = await ask(ports, request, facts.provider);
    if (isAnswer(answer)) health = 'looked_up';
    ports.report.lookUp(facts.provider, answer.verdict);
    // Without its data key an operation keeps no new personal data either.
    const keep = answer.result !== null && opened !== null;
    const result = keep ? ports.sealer.seal(opened.dataKey, JSON.stringify(answer.result), `${loaded.stream}/result`) : null;
    const check: CheckOutcome = { ...answer, result };
    const recorded = await handleCommand(ports, {
      stream: loaded.stream,
      commands: [{ type: 'RecordCheck', askedAtMs, doubtAgeMs, check, jitter: ports.random() }],
      commandId: `check:${ports.newId()}`,
      tenant: null,
      actor: `dispatcher:${ports.worker}`,
      correlation: facts.operationId,
      causation: null,
      traceparent: null,
      loaded,
    });
    if (recorded.operation.state.status !== 'unknown') doubts.forget(facts.operationId);
  } catch (error) {
    // The row comes back after a while and the provider is asked again.
    ports.report.fault('looking up an outcome', facts.operationId, error as Error);
  } finally {
    gate.done(health);
  }
}

/** Tries a provider that was down with a question that causes nothing. Never throws; the gate's slot is given back in the end. */
export async function probe(ports: DispatcherPorts, { state }: Loaded, payload: unknown, gate: ProviderGate): Promise<void> {
  const answer = await ask(ports, providerCall(state, payload, gate.provider.timeoutMs), gate.provider.name);
  gate.done(isAnswer(answer) ? 'looked_up' : 'unhealthy');
}

function isAnswer({ verdict, anomaly }: LookupAnswer): boolean {
  return verdict !== 'inconclusive' || anomaly !== null;
}

async function ask(ports: DispatcherPorts, request: ProviderCall, provider: string): Promise<LookupAnswer> {
  const inconclusive = (code: string): LookupAnswer => ({
    verdict: 'inconclusive',
    code,
    anomaly: null,
    providerOperationId: null,
    result: null,
  });
  const adapter = ports.providers.get(provider);
  // Declared when the operation was planned and taken out of the catalogue since.
  if (!adapter?.lookUp) return inconclusive('lookup_not_configured');
  try {
    return await adapter.lookUp(request);
  } catch (error) {
    ports.report.fault('calling a look-up', request.operationId, error as Error);
    return inconclusive('adapter_error');
  }
}
