import type { LookupPolicy, OperationPolicy } from '#domain';
import { NO_OUTCOMES, readOutcomes } from './read-outcomes.js';
import { readLookup } from './read-lookup.js';
import type { CommonSettings, ReadProvider } from './read-provider.js';
import type { Section } from './section.js';
import type { HttpProviderSettings, LookupSettings } from './settings.js';
import { parseTemplate, usesPayload } from './template.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** The margin covers a clock and a network that are slower than usual; more would only shorten the time for retries. */
const MARGIN_INITIAL_MAX_MS = 5 * MINUTE_MS;
const MARGIN_INITIAL_SHARE = 0.1;

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
/** Set by the client itself, from what is sent. */
const RESERVED_HEADERS = [
  'host',
  'content-length',
  'content-type',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'expect',
  'trailer',
  'te',
];

export function readHttpProvider(section: Section, common: CommonSettings, leaseMs: number): Omit<ReadProvider, 'leaseMs'> {
  const { origin, pathPrefix } = readBaseUrl(section);
  const headers = readHeaders(section);
  const { keyHeader, sameKey } = readIdempotency(section, headers);
  const outcomesSection = section.section('outcomes');
  const outcomes = outcomesSection ? readOutcomes(outcomesSection) : NO_OUTCOMES;
  const lookup = readLookupOrNone(section, leaseMs);
  const settings: HttpProviderSettings = {
    ...common,
    kind: 'http',
    origin,
    pathPrefix,
    headers,
    keyHeader,
    outcomes,
    lookup: lookup?.settings ?? null,
  };
  const byReference = outcomes.alreadyDone.length > 0 ? ({ by: 'reference' } as const) : null;
  return { settings, sameKey: sameKey ?? byReference, lookup: lookup?.policy ?? null };
}

function readBaseUrl(section: Section): { origin: string; pathPrefix: string } {
  const text = section.requiredText('base_url', 'base_url: https://api.example.com');
  const nowhere = { origin: 'http://localhost', pathPrefix: '' };
  if (text === '') return nowhere;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    section.fault('base_url', 'Must be a URL that starts with https:// or http://.', 'Write for example https://api.example.com.');
    return nowhere;
  }
  if (url.username !== '' || url.password !== '') {
    section.fault('base_url', 'Must not hold a user or a password.', 'Send them in headers.authorization.');
  }
  if (url.search !== '' || url.hash !== '') {
    section.fault('base_url', 'Must not have a query or a fragment.', 'Put the query into the path of the request.');
  }
  return { origin: url.origin, pathPrefix: url.pathname.replace(/\/+$/, '') };
}

function readHeaders(section: Section): HttpProviderSettings['headers'] {
  const headers = section.section('headers');
  if (!headers) return [];
  const names = headers.names().map((name) => name.toLowerCase());
  return headers.names().map((name, index) => {
    const lowerCase = name.toLowerCase();
    if (!HEADER_NAME.test(name)) headers.fault(name, 'Is not a header name.', 'Use letters, digits and hyphens.');
    if (RESERVED_HEADERS.includes(lowerCase)) headers.fault(name, 'Is set by the client itself.', 'Remove it.');
    if (names.indexOf(lowerCase) !== index) headers.fault(name, 'Is there twice.', 'Keep one of the two; case does not count.');
    const text = headers.requiredText(name, `${name}: "value"`);
    // What an HTTP field value may be (RFC 9110 section 5.5), without bytes beyond ASCII, which receivers read differently.
    if (!/^[\x20-\x7e\t]*$/.test(text))
      headers.fault(name, 'Has characters that a header may not have.', 'Use printable ASCII characters.');
    const { template, unknown } = parseTemplate(text);
    if (unknown.length > 0 || usesPayload(template)) {
      headers.fault(name, 'Has a placeholder that a header does not know.', 'Known: {provider_key}, {operation_id}.');
    }
    return [lowerCase, template] as const;
  });
}

function readIdempotency(
  section: Section,
  headers: HttpProviderSettings['headers'],
): { keyHeader: string | null; sameKey: OperationPolicy['same_key'] } {
  const idempotency = section.sectionOrNone('idempotency');
  if (!idempotency) return { keyHeader: null, sameKey: null };
  const header = idempotency.text('header', 'Idempotency-Key');
  if (!HEADER_NAME.test(header)) idempotency.fault('header', 'Is not a header name.', 'Use letters, digits and hyphens.');
  const keyHeader = header.toLowerCase();
  if (headers.some(([name]) => name === keyHeader))
    idempotency.fault('header', 'Is also in headers.', 'Keep it here: it carries the provider key.');
  if (RESERVED_HEADERS.includes(keyHeader))
    idempotency.fault('header', 'Is set by the client itself.', 'Name the header that the provider reads the key from.');
  if (!idempotency.has('retention')) {
    idempotency.fault(
      'retention',
      'Is required: after it, the same key may cause a second effect.',
      'Write how long the provider remembers a key, for example 24h.',
    );
  }
  const retentionMs = idempotency.duration('retention', DAY_MS, { min: 1_000, max: 400 * DAY_MS });
  const initialMarginMs = Math.min(Math.floor(retentionMs * MARGIN_INITIAL_SHARE), MARGIN_INITIAL_MAX_MS);
  const marginMs = idempotency.duration('margin', initialMarginMs, { min: 0, max: 400 * DAY_MS });
  if (marginMs >= retentionMs)
    idempotency.fault('margin', 'Must be shorter than the retention.', 'Leave it out: a tenth of the retention, at most 5m.');
  // Where nothing is said the worse is assumed: that a repetition only brings the stored error back.
  const repeatsStoredErrors = idempotency.flag('repeats_stored_errors', true);
  idempotency.end();
  return { keyHeader, sameKey: { by: 'key', retention_ms: retentionMs, margin_ms: marginMs, repeats_stored_errors: repeatsStoredErrors } };
}

function readLookupOrNone(section: Section, leaseMs: number): { settings: LookupSettings; policy: LookupPolicy } | null {
  const lookup = section.sectionOrNone('lookup');
  return lookup ? readLookup(lookup, leaseMs) : null;
}
