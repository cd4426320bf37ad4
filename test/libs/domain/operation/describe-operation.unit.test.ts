import { describe, expect, it } from 'vitest';
import { describeOperation, ERASED } from '#domain';
import { given, T0, type Dated } from '../../../support/decider-specification.js';
import {
  cancelled,
  checked,
  failed,
  notSent,
  planned,
  plannedData,
  reviewDecided,
  reviewRequested,
  started,
  succeeded,
  time,
  unknown,
} from '../support/events.js';
import { HOUR, LEASE_MS, policies } from '../support/policies.js';

const shown = (events: readonly Dated[], result: unknown = null) => describeOperation(given(...events).state, result, T0 + 100);

describe('describeOperation', () => {
  it('shows a planned operation in full', () => {
    const { operation_id, idempotency_key, identity, payload_hash } = plannedData();
    expect(shown([planned()])).toEqual({
      operation_id,
      idempotency_key,
      tenant: 't1',
      action_type: 'refund.create',
      identity,
      status: 'planned',
      hold: null,
      review: null,
      payload_hash,
      attempt_count: 0,
      provider: 'payments',
      provider_operation_id: null,
      result: null,
      last_error: null,
      evidence: null,
      lease_until: null,
      next_attempt_at: null,
      next_check_at: null,
      safe_retry_until: null,
      source: null,
      revision: 0,
      created_at: time(0),
      updated_at: time(0),
      guidance: expect.objectContaining({ state: 'in_progress' }) as unknown,
    });
  });

  it.each([
    ['executing', [planned(), started(7)], { lease_until: time(7 + LEASE_MS), attempt_count: 1, revision: 1, updated_at: time(7) }],
    ['failed_retryable', [planned(), started(0), notSent(5)], { next_attempt_at: time(1005), last_error: { code: 'http_429' } }],
    ['unknown', [planned(), started(0), unknown(5)], { next_check_at: time(1005), last_error: { code: 'timeout' }, review: null }],
    [
      'unknown',
      [planned(), started(0), unknown(5, 1, { code: 'server_error', status: 502 })],
      { last_error: { code: 'server_error', status: 502 } },
    ],
    [
      'unknown',
      [planned(policies.f), started(0), unknown(5, 1, { checkMs: null }), reviewRequested(5)],
      { review: { open: true, reason: 'no_lookup' }, next_check_at: null },
    ],
    ['succeeded', [planned(), started(0), succeeded(5)], { provider_operation_id: 're_1', evidence: 'response', last_error: null }],
    [
      'succeeded',
      [planned(), started(0), unknown(5), checked(9, 'present'), succeeded(9, 1, 're_1', 'lookup')],
      { evidence: 'lookup', last_error: null },
    ],
    [
      'failed_final',
      [planned(), started(0), failed(5)],
      { evidence: 'response', last_error: { code: 'http_402', reason: expect.any(String) as unknown } },
    ],
    ['failed_final', [planned(), cancelled(5)], { attempt_count: 0, last_error: { code: 'cancelled', reason: 'no longer wanted' } }],
    [
      'unknown',
      [planned(policies.b), started(0, 1, HOUR), unknown(5), reviewRequested(9), reviewDecided(10, 'retry_once')],
      { review: { open: false, reason: 'looked it up', decision: 'retry_once' }, safe_retry_until: time(HOUR) },
    ],
  ] as const)('shows %s with what is known of it', (status, events, known) => {
    const resource = shown(events);
    expect(resource).toMatchObject(known);
    expect(resource).toMatchObject({ status, created_at: time(0), revision: events.length - 1 });
  });

  it('shows the result that it is handed, and says where it can no longer be read', () => {
    expect(shown([planned(), started(0), succeeded(5)], { status: 'paid' })).toMatchObject({ result: { status: 'paid' } });
    expect(shown([planned(), started(0), succeeded(5)], { status: 'paid' })).not.toHaveProperty('result_erased');
    expect(shown([planned(), started(0), succeeded(5)], ERASED)).toMatchObject({ result: null, result_erased: true });
  });

  it('never shows anything sealed', () => {
    expect(JSON.stringify(shown([planned(), started(0), succeeded(5)]))).not.toContain('sealed');
  });
});
