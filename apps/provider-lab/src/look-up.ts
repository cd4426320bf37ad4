import type { IncomingMessage, ServerResponse } from 'node:http';
import { hold, sendJson } from './http-io.js';
import type { LabState } from './lab-state.js';
import type { Entry } from './ledger.js';
import { classRules, type HttpKind, type ProviderClass } from './provider-classes.js';
import type { Timers } from './timers.js';

/** A caller that gets this many matches knows as much as from all of them. */
const maxItems = 100;

/** `GET /{class}/v1/{kind}?reference=`: what the provider is willing to say about a reference. */
export async function lookUp(
  state: LabState,
  answers: Timers,
  name: ProviderClass,
  kind: HttpKind,
  reference: string | null,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (!classRules[name].lookup) {
    sendJson(response, 405, { error: 'no_lookup', detail: `class ${name} has no look-up` }, { allow: 'POST' });
    return;
  }
  if (reference === null || reference === '') {
    sendJson(response, 400, { error: 'invalid_request', field: 'reference', rule: 'is required in the query' });
    return;
  }
  state.recordLookup(reference);
  const settings = state.settingsOf(name);
  const now = Date.now();
  const seen = state.ledger
    .entriesOf(reference)
    .filter((entry) => entry.class === name && entry.kind === kind && isVisible(entry, now, settings.visibilityLagMs))
    .slice(0, maxItems)
    .map(itemOf);
  // An effect is told only when it is on disk: what a look-up has seen must not be gone after a kill.
  await state.settled();
  switch (settings.lookupFault) {
    case 'timeout':
      return hold(request, answers);
    case '403':
      return sendJson(response, 403, { error: 'forbidden' });
    case '500':
      return sendJson(response, 500, { error: 'internal_error' });
    case 'two_matches':
      return sendJson(response, 200, { items: seen.flatMap((item) => [item, { ...item, id: `${item.id}_2` }]) });
    case 'other_amount':
      return sendJson(response, 200, { items: seen.map((item) => ({ ...item, amount_minor: (item.amount_minor ?? 0) + 1 })) });
    case 'none':
      return sendJson(response, 200, { items: seen });
  }
}

const isVisible = (entry: Entry, now: number, lagMs: number): boolean => entry.effectAt !== null && now >= entry.effectAt + lagMs;

const itemOf = (entry: Entry) => ({
  id: entry.id,
  reference: entry.providerKey,
  business_reference: entry.businessReference,
  amount_minor: entry.amountMinor,
  currency: entry.currency,
  status: 'done',
  created_at: new Date(entry.effectAt ?? entry.at).toISOString(),
});
