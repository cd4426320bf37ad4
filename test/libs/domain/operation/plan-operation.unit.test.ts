import { describe, it } from 'vitest';
import { given } from '../../../support/decider-specification.js';
import { plan } from '../support/commands.js';
import { cancelled, failed, planned, plannedData, started, succeeded, unknown } from '../support/events.js';

const stored = plannedData().payload_hash;
const other = `hs256-v1:${'b'.repeat(64)}`;
const submit = (payload_hash: string, over: { action_type?: string; payloadHashes?: string[] } = {}) => ({
  type: 'PlanOperation' as const,
  planned: { ...plannedData(), payload_hash, action_type: over.action_type ?? 'refund.create' },
  payloadHashes: over.payloadHashes ?? [payload_hash],
});

describe('PlanOperation', () => {
  it('records the intent', () => {
    given().when(0, plan()).then(['OperationPlanned', plannedData()]).thenStatus('planned').andAgainNothing();
  });

  it.each([
    ['planned', [planned()]],
    ['executing', [planned(), started(1)]],
    ['unknown', [planned(), started(1), unknown(2)]],
    ['succeeded', [planned(), started(1), succeeded(2)]],
    ['failed_final', [planned(), started(1), failed(2)]],
    ['failed_final', [planned(), cancelled(1)]],
  ] as const)('law 1: attaches to the operation that is %s already', (status, events) => {
    given(...events)
      .when(9, plan())
      .thenNothing()
      .thenStatus(status);
  });

  it('public case 3: refuses another payload under the same identity, naming both hashes', () => {
    given(planned(), started(1), succeeded(2))
      .when(9, submit(other))
      .thenRefused({ code: 'payload_mismatch', storedHash: stored, submittedHash: other })
      .thenStatus('succeeded');
  });

  it('refuses another action under the same identity', () => {
    given(planned())
      .when(9, submit(stored, { action_type: 'email.send' }))
      .thenRefused({ code: 'action_mismatch' });
  });

  it('public case 11d: recognises a payload whose stored hash an older secret made', () => {
    given(planned())
      .when(9, submit('hs256-v2:now', { payloadHashes: ['hs256-v2:now', stored] }))
      .thenNothing();
  });
});
