import { createProviders } from '#adapters/providers/create-providers.js';
import type { ProviderAdapter } from '#domain';
import { loadText } from '../../libs/adapters/catalogue/catalogue-text.js';

/** What the lab and the scripted server answer, declared as in the shipped catalogue. */
const OUTCOMES = 'outcomes: { final: [400, 402, 404, 422], not_consumed: [408, 429], in_progress: [409] }';
const KEYED = 'idempotency: { header: Idempotency-Key, retention: 24h, repeats_stored_errors: true }';
const LOOKUP = `lookup:
      request: { path: '/v1/refunds?reference={provider_key}' }
      consistent: true
      landing: 1s
      present: /items
      id: /id
      amount: /amount_minor`;

/** `refund.create` over HTTP at this address. */
export function refundsAt(origin: string, { timeout = '5s', lookup = true, keyed = true, outcomes = OUTCOMES } = {}): ProviderAdapter {
  const parts = [outcomes, keyed ? KEYED : "headers: { idempotency-key: '{provider_key}' }", ...(lookup ? [LOOKUP] : [])];
  return createProviders(
    loadText(`providers:
  payments:
    kind: http
    base_url: ${origin}
    timeout: ${timeout}
    limits: { concurrency: 1 }
    ${parts.join('\n    ')}
actions:
  refund.create:
    provider: payments
    request: { path: /v1/refunds }
    result: { provider_operation_id: id }
`),
  ).get('payments')!;
}

/** `email.send` at this port. */
export function mailAt(port: number, timeout = '5s'): ProviderAdapter {
  return createProviders(
    loadText(`providers:
  payments:
    kind: smtp
    url: smtp://127.0.0.1:${port}
    from: Onefold <no-reply@onefold.example>
    timeout: ${timeout}
actions:
  email.send:
    provider: payments
    request: { mail: { to: /to, subject: /subject, text: /text } }
`),
  ).get('payments')!;
}
