import type { LookupAnswer } from '#domain';
import { valueAt } from '../../catalogue/pointer-value.js';
import type { KeptMember, LookupSettings } from '../../catalogue/settings.js';
import { idAt, keptMembers, parseJson } from './answer-body.js';
import type { Exchange } from './exchange.js';

/** What the provider's answer to a look-up says of the operation. Whatever is not exactly as declared is inconclusive. */
export function readLookup(lookup: LookupSettings, exchanged: Exchange, payload: unknown, keep: readonly KeptMember[]): LookupAnswer {
  switch (exchanged.kind) {
    case 'unsendable':
      return inconclusive('invalid_request');
    case 'not_sent':
    case 'unknown':
      return inconclusive(exchanged.code);
    case 'answer':
      if (lookup.absent.includes(exchanged.status)) return ABSENT;
      if (exchanged.status < 200 || exchanged.status > 299) return inconclusive(`http_${exchanged.status}`);
      return readFound(lookup, parseJson(exchanged.body), payload, keep);
  }
}

function readFound(lookup: LookupSettings, body: unknown, payload: unknown, keep: readonly KeptMember[]): LookupAnswer {
  const found = valueAt(body, lookup.present);
  if (Array.isArray(found)) {
    if (found.length === 0) return ABSENT;
    if (found.length > 1) return inconclusive(null, 'two_matches');
    return readMatch(lookup, found[0], payload, keep);
  }
  if (found === null || found === false) return ABSENT;
  // A member that is not there at all, or is empty, is an answer of another shape than the declared one: proof of nothing.
  if (found === undefined || found === '' || found === 0) return inconclusive('unreadable_response');
  return readMatch(lookup, typeof found === 'object' ? found : body, payload, keep);
}

/** @param match the one element, or the object found; the whole answer where only a value says that there is one */
function readMatch(lookup: LookupSettings, match: unknown, payload: unknown, keep: readonly KeptMember[]): LookupAnswer {
  const { id, amount, amountOf, refused } = lookup;
  if (amount !== null && amountOf !== null) {
    const told = valueAt(match, amount);
    const ordered = valueAt(payload, amountOf);
    if (told === undefined) return inconclusive('unreadable_response');
    if (ordered !== undefined && told !== ordered) return inconclusive(null, 'other_amount');
  }
  if (refused !== null && refused.equals.includes(valueAt(match, refused.pointer)))
    return { ...NOTHING, verdict: 'refused', code: 'refused' };
  const providerOperationId = id === null ? null : idAt(match, id);
  if (id !== null && providerOperationId === null) return inconclusive('unreadable_response');
  return { ...NOTHING, verdict: 'present', providerOperationId, result: keptMembers(match, keep) };
}

const NOTHING = { code: null, anomaly: null, providerOperationId: null, result: null } as const;
const ABSENT: LookupAnswer = { ...NOTHING, verdict: 'absent' };

export function inconclusive(code: string | null, anomaly: LookupAnswer['anomaly'] = null): LookupAnswer {
  return { ...NOTHING, verdict: 'inconclusive', code, anomaly };
}
