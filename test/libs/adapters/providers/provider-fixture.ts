import type { ProviderAdapter, ProviderCall } from '#domain';
import { createProviders } from '#adapters/providers/create-providers.js';
import { loadText, minimal } from '../catalogue/catalogue-text.js';

/** A call of `thing.create`, as the dispatcher makes it. */
export function call(change: Partial<ProviderCall> = {}): ProviderCall {
  return {
    operationId: 'op_1',
    providerKey: '7a1e58a8-2b6c-5b0f-9d8e-3f1a2b4c5d6e',
    actionType: 'thing.create',
    tenant: 't1',
    identity: { workflow_id: 'case-1842', step: 'pay' },
    attempt: 1,
    payload: { order_id: '4417', amount_minor: 3800 },
    timeoutMs: 5_000,
    ...change,
  };
}

/** The adapter of a catalogue with one provider and one action. */
export function adapterOf(lines: { provider?: string; action?: string }): ProviderAdapter {
  return createProviders(loadText(minimal(lines))).get('payments')!;
}
