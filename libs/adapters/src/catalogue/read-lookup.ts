import type { LookupPolicy } from '#domain';
import { readBackoff } from './read-backoff.js';
import { readPath } from './read-path.js';
import type { Section } from './section.js';
import type { LookupSettings } from './settings.js';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;
const DAY_MS = 24 * HOUR_MS;

/** First soon, since most doubts are cleared by one question, then ever slower. */
const FIRST_CHECK_INITIAL_MS = 5 * SECOND_MS;
const MAX_CHECKS_INITIAL = 10;
const BACKOFF_INITIAL = { initialMs: 5 * SECOND_MS, factor: 2, maxMs: 300 * SECOND_MS };

export function readLookup(section: Section, leaseMs: number): { settings: LookupSettings; policy: LookupPolicy } {
  return { settings: readSettings(section), policy: readPolicy(section, leaseMs) };
}

function readPolicy(section: Section, leaseMs: number): LookupPolicy {
  const consistent = section.flag('consistent', false);
  const lagMs = section.duration('visibility_lag', null, { min: 0, max: 7 * DAY_MS });
  if (!consistent && !section.has('visibility_lag')) {
    section.fault(
      'visibility_lag',
      'Is required: without it, "not found" would prove nothing.',
      'Write how long an effect may stay invisible, for example 60s, or consistent: true.',
    );
  }
  if (consistent && lagMs !== null)
    section.fault('visibility_lag', 'A consistent look-up has none.', 'Remove it, or write consistent: false.');
  const landingMs = section.duration('landing', leaseMs, { min: 0, max: 7 * DAY_MS });
  const firstCheckMs = section.duration('first_check', FIRST_CHECK_INITIAL_MS, { min: 0, max: DAY_MS });
  const maxChecks = section.number('max_checks', MAX_CHECKS_INITIAL, { min: 1, max: 100 });
  const backoff = readBackoff(section, BACKOFF_INITIAL);
  section.end();
  return {
    consistent,
    visibility_lag_ms: consistent ? 0 : (lagMs ?? 0),
    landing_ms: landingMs,
    first_check_ms: firstCheckMs,
    max_checks: maxChecks,
    backoff,
  };
}

function readSettings(section: Section): LookupSettings {
  const request = section.section('request');
  if (!request) section.fault('request', 'Is required.', 'Write request: { path: "/v1/things?reference={provider_key}" }.');
  request?.word('method', ['GET'], 'GET');
  const path = request ? readPath(request, 'path') : [];
  request?.end();
  const amount = section.pointer('amount', null);
  const amountOf = section.pointer('amount_of', amount);
  if (amount === null && amountOf !== null)
    section.fault('amount_of', 'Has no amount to be compared with.', 'Declare amount, or remove amount_of.');
  return {
    path,
    present: section.requiredPointer('present', 'present: /data'),
    id: section.pointer('id', null),
    amount,
    amountOf,
    refused: readRefused(section),
    absent: readAbsent(section),
  };
}

function readRefused(section: Section): LookupSettings['refused'] {
  const refused = section.section('refused');
  if (!refused) return null;
  const pointer = refused.requiredPointer('pointer', 'pointer: /status');
  const equals = refused.list('equals') ?? [];
  const usable = equals.length > 0 && equals.every((value) => ['string', 'number', 'boolean'].includes(typeof value));
  if (!usable) refused.fault('equals', 'Must be a list of at least one text, number, true or false.', 'Write equals: [failed, cancelled].');
  refused.end();
  return { pointer, equals };
}

function readAbsent(section: Section): readonly number[] {
  const statuses = section.list('absent') ?? [];
  const usable = statuses.every((status) => status === 404 || status === 410);
  if (!usable) section.fault('absent', 'Can only hold 404 and 410.', 'Other statuses do not say that there is nothing.');
  return statuses.filter((status) => typeof status === 'number');
}
