import { describe, expect, it } from 'vitest';
import { guidanceFor } from '#domain';
import { fold, given, T0, type Dated } from '../../../support/decider-specification.js';
import { decideReview, record, told } from '../support/commands.js';
import {
  cancelled,
  evidence,
  failed,
  notSent,
  planned,
  reviewDecided,
  reviewRequested,
  started,
  succeeded,
  time,
  unknown,
} from '../support/events.js';
import { HOUR, policies } from '../support/policies.js';

const guidance = (events: readonly Dated[], afterMs = 100) => guidanceFor(given(...events).state, T0 + afterMs);
const attaches = { same_identity: 'attaches', new_operation: false };

/** The table "What the caller is told" of the design, row by row. */
describe('guidance', () => {
  it.each([
    ['planned', [planned()]],
    ['executing', [planned(), started(0)]],
    ['failed_retryable', [planned(), started(0), notSent(5)]],
  ] as const)('%s: in progress', (status, events) => {
    expect(fold(events).status).toBe(status);
    expect(guidance(events)).toMatchObject({ state: 'in_progress', ...attaches, say: 'In progress. Do not say it succeeded or failed.' });
  });

  it('unknown, being looked up: unconfirmed', () => {
    expect(guidance([planned(), started(0), unknown(5)])).toMatchObject({
      state: 'unconfirmed',
      ...attaches,
      say: 'Outcome not confirmed yet. Do not say it succeeded or failed.',
    });
  });

  it('unknown, review open: checking', () => {
    expect(guidance([planned(policies.f), started(0), unknown(5), reviewRequested(5)])).toMatchObject({
      state: 'checking',
      ...attaches,
      retry_after_seconds: 30,
      say: 'Outcome unknown. A person is checking. Do not say it succeeded or failed.',
    });
  });

  it('succeeded: done; again only as a new revision', () => {
    expect(guidance([planned(), started(0), succeeded(5)])).toMatchObject({
      state: 'done',
      same_identity: 'stored_result',
      new_operation: 'new_revision',
      retry_after_seconds: null,
      safe_retry_until: null,
    });
  });

  it.each([
    ['refused', [planned(), started(0), failed(5)]],
    ['cancelled', [planned(), cancelled(5)]],
    ['out of attempts', [planned(), started(0), notSent(5), failed(9, 1, 'attempts_exhausted', 'budget')]],
  ] as const)('failed_final, %s: failed; again as a new revision', (_, events) => {
    expect(guidance(events)).toMatchObject({ state: 'failed', same_identity: 'stored_failure', new_operation: 'new_revision' });
  });

  describe('invites no second effect', () => {
    const noInvitation = { same_identity: 'stored_failure', new_operation: false };

    it('after a person gave up without an answer', () => {
      const { state } = given(planned(policies.f), started(0), unknown(5), reviewRequested(5)).when(
        9,
        decideReview({ decision: 'give_up' }),
      );
      expect(guidanceFor(state, T0)).toMatchObject({ state: 'failed', ...noInvitation });
      expect(guidanceFor(state, T0).say).toContain('do not order it again');
    });

    it('while evidence against a failure is with a person, nor after', () => {
      const contradicted = given(planned(), started(0), failed(5)).when(9, record(1, told.success()));
      expect(guidanceFor(contradicted.state, T0)).toMatchObject({ state: 'checking', ...noInvitation, retry_after_seconds: 30 });
      const { state } = contradicted.when(10, decideReview({ decision: 'acknowledge', expectedRevision: 4 }));
      expect(state.review).toBeNull();
      expect(guidanceFor(state, T0)).toMatchObject({ state: 'failed', ...noInvitation });
    });

    it('while evidence against a success is with a person', () => {
      const { state } = given(planned(), started(0), succeeded(5)).when(9, record(1, told.success('re_2')));
      expect(guidanceFor(state, T0)).toMatchObject({ state: 'checking', same_identity: 'stored_result', new_operation: false });
    });
  });

  it('never tells a state that can still succeed as failed, nor the other way round', () => {
    const open = [[planned()], [planned(), started(0)], [planned(), started(0), notSent(5)], [planned(), started(0), unknown(5)]];
    for (const events of open) expect(guidance(events).say).toContain('Do not say it succeeded or failed');
  });

  it('retry_after_seconds: rounded up to when something is due, at least a second', () => {
    expect(guidance([planned(), started(0), notSent(5, 1, { retryMs: 7100 })], 100).retry_after_seconds).toBe(7);
    expect(guidance([planned(), started(0), notSent(5, 1, { retryMs: 7101 })], 100).retry_after_seconds).toBe(8);
    expect(guidance([planned(), started(0), unknown(5, 1, { checkMs: 3000 })], 100).retry_after_seconds).toBe(3);
    expect(guidance([planned(), started(0), unknown(5, 1, { checkMs: 3000 })], 9000).retry_after_seconds).toBe(1);
    expect(guidance([planned()]).retry_after_seconds).toBe(1);
  });

  it('safe_retry_until: until when the provider knows the key, while it matters', () => {
    const events = [planned(policies.b), started(0, 1, HOUR)];
    expect(guidance(events).safe_retry_until).toBe(time(HOUR));
    expect(guidance([...events, unknown(5)]).safe_retry_until).toBe(time(HOUR));
    expect(guidance([...events, unknown(5), reviewRequested(9), reviewDecided(10, 'retry_once')]).safe_retry_until).toBe(time(HOUR));
    expect(guidance([...events, notSent(5, 1, { reached: false })]).safe_retry_until).toBeNull();
    expect(guidance([planned(), started(0)]).safe_retry_until).toBeNull();
  });

  it('does not change with evidence that contradicts nothing', () => {
    const events = [planned(), started(0), succeeded(5)];
    const more = evidence(9, 1, { verdict: 'unknown', code: 'timeout', provider_operation_id: null });
    expect(guidance([...events, more])).toEqual(guidance(events));
  });
});
