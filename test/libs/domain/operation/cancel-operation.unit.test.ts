import { describe, it } from 'vitest';
import { given } from '../../../support/decider-specification.js';
import { cancel } from '../support/commands.js';
import { cancelled, failed, notSent, planned, started, succeeded, unknown } from '../support/events.js';

describe('CancelOperation', () => {
  it('stops an operation before its first attempt, for good', () => {
    given(planned())
      .when(1, cancel)
      .then(['OperationCancelled', { reason: 'no longer wanted' }])
      .thenStatus('failed_final')
      .andAgainNothing();
  });

  it('law 1: decides to nothing when repeated', () => {
    given(planned(), cancelled(1)).when(2, cancel).thenNothing();
  });

  it.each([
    ['executing', [planned(), started(1)]],
    ['unknown', [planned(), started(1), unknown(2)]],
    ['failed_retryable', [planned(), started(1), notSent(2)]],
    ['succeeded', [planned(), started(1), succeeded(2)]],
    ['failed_final', [planned(), started(1), failed(2)]],
  ] as const)('is refused once an attempt was made: %s', (status, events) => {
    given(...events)
      .when(3, cancel)
      .thenRefused({ code: 'not_cancellable' })
      .thenStatus(status);
  });

  it('is refused for an operation that does not exist', () => {
    given().when(1, cancel).thenRefused({ code: 'operation_not_found' });
  });
});
