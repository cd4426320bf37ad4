import type { KnownOperation, ProviderCall } from '#domain';

export function providerCall({ facts, history }: KnownOperation, payload: unknown, timeoutMs: number): ProviderCall {
  return {
    operationId: facts.operationId,
    providerKey: facts.providerKey,
    actionType: facts.actionType,
    tenant: facts.tenant,
    identity: facts.identity,
    attempt: history.count,
    payload,
    timeoutMs,
  };
}
