import { expect } from 'vitest';
import {
  decide,
  evolve,
  foldDecided,
  initialState,
  type Decision,
  type KnownOperation,
  type OperationCommand,
  type OperationEvent,
  type OperationState,
  type OperationStatus,
  type Refusal,
} from '#domain';

/** Where the tests' time begins. All their times are milliseconds after it. */
export const T0 = Date.parse('2026-01-05T10:00:00.000Z');

/** An event, and when it was stored. */
export type Dated = readonly [afterMs: number, event: OperationEvent];

export function fold(events: readonly Dated[]): OperationState {
  return events.reduce<OperationState>(
    (state, [afterMs, event], revision) => evolve(state, event, { tenant: 't1', atMs: T0 + afterMs, revision }),
    initialState,
  );
}

/** A rule of the operation as an example: these events have happened, this is asked for, that follows. */
export function given(...events: readonly Dated[]) {
  return givenState(fold(events));
}

export function givenState(state: OperationState) {
  return {
    state: state as KnownOperation,
    when(afterMs: number, command: OperationCommand) {
      const nowMs = T0 + afterMs;
      return outcomeOf(state, decide(state, command, nowMs), nowMs, command);
    },
  };
}

function outcomeOf(before: OperationState, decision: Decision, nowMs: number, command: OperationCommand) {
  const after = decision.refusal ? before : foldDecided(before, decision.events, nowMs, 't1');
  const outcome = {
    decision,
    state: after as KnownOperation,
    /** Exactly these events, by type and by the data that is named. */
    then(...events: readonly (readonly [OperationEvent['type'], object?])[]) {
      expect(decision.refusal).toBeUndefined();
      expect(decision.refusal ? [] : decision.events).toMatchObject(events.map(([type, data = {}]) => ({ type, data })));
      return outcome;
    },
    thenNothing: () => outcome.then(),
    thenRefused(refusal: Partial<Refusal>) {
      expect(decision.refusal).toMatchObject(refusal);
      return outcome;
    },
    thenStatus(status: OperationStatus) {
      expect(after.status).toBe(status);
      return outcome;
    },
    thenReview(reason: string | null) {
      expect(outcome.state.review?.reason ?? null).toBe(reason);
      return outcome;
    },
    /** Law 1. */
    andAgainNothing() {
      const again = decide(after, command, nowMs);
      expect(again.refusal ? [] : again.events).toEqual([]);
      return outcome;
    },
    /** Goes on from here. */
    when: (afterMs: number, next: OperationCommand) => givenState(after).when(afterMs, next),
  };
  return outcome;
}
