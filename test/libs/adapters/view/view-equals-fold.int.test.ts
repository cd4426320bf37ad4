import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OperationProjection } from '#adapters/view/operation-projection.js';
import { digestOfView } from '#adapters/view/view-digest.js';
import { REVIEW_DECISIONS, type AttemptOutcome, type OperationCommand, type OperationState, type RecordedEvent } from '#domain';
import { digestOfFold, foldLog, Histories, openViewDatabase, type ViewDatabase } from './view-fixture.js';

let database: ViewDatabase;
beforeAll(async () => {
  database = await openViewDatabase();
});
afterAll(() => database.close());

const HISTORIES = 100;

const outcome: fc.Arbitrary<AttemptOutcome> = fc.oneof(
  fc.record({
    kind: fc.constant('succeeded' as const),
    providerOperationId: fc.option(fc.constantFrom('po_1', 'po_2')),
    result: fc.option(fc.constant('sealed')),
    responseDigest: fc.constant(null),
  }),
  fc.record({ kind: fc.constant('failed' as const), code: fc.constantFrom('declined', 'closed'), reason: fc.string({ maxLength: 20 }) }),
  fc.record({ kind: fc.constant('unknown' as const), code: fc.constantFrom('timeout', 'reset'), status: fc.option(fc.constant(502)) }),
  fc.record({
    kind: fc.constant('not_sent' as const),
    code: fc.constant('refused'),
    reached: fc.boolean(),
    retryAfterMs: fc.option(fc.nat({ max: 5_000 })),
  }),
  fc.constant({ kind: 'already_done' as const }),
);

/** One move in the life of one of a few operations. Which command it comes to depends on what the operation has become. */
const move = fc.record({
  operation: fc.nat({ max: 3 }),
  waitMs: fc.constantFrom(0, 10, 1_500, 12_000, 90_000),
  pick: fc.nat(),
  attemptsBack: fc.constantFrom(0, 0, 0, 1),
  outcome,
  verdict: fc.constantFrom('present' as const, 'absent' as const, 'refused' as const, 'inconclusive' as const),
  decision: fc.constantFrom(...REVIEW_DECISIONS),
  jitter: fc.double({ min: 0, max: 0.999, noNaN: true }),
});
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

function commandFor(state: OperationState, made: Move, histories: Histories): OperationCommand {
  const count = state.status === 'absent' ? 1 : state.history.count;
  const { verdict, jitter, decision } = made;
  const possible: OperationCommand[] = [
    histories.startAttempt(),
    { type: 'RecordOutcome', attempt: Math.max(1, count - made.attemptsBack), outcome: made.outcome, jitter },
    { type: 'Conclude' },
  ];
  if (state.status === 'planned') possible.push({ type: 'CancelOperation', reason: 'no longer wanted' });
  if (state.status === 'unknown') {
    const check = { verdict, code: null, anomaly: null, providerOperationId: verdict === 'present' ? 'po_1' : null, result: null };
    possible.push(
      { type: 'RecordCheck', askedAtMs: histories.nowMs, doubtAgeMs: histories.nowMs, check, jitter },
      { type: 'RequestCheck', reason: null },
    );
  }
  if (state.status !== 'absent' && state.review) {
    possible.push({
      type: 'DecideReview',
      decision,
      decisionId: null,
      expectedRevision: state.revision,
      actor: 'ann',
      reason: 'seen in the bank statement',
      evidence: 'statement 7',
      providerOperationId: null,
    });
  }
  return possible[made.pick % possible.length]!;
}

async function live(moves: readonly Move[]): Promise<Histories> {
  const histories = new Histories();
  for (const made of moves) {
    histories.nowMs += made.waitMs;
    const intent = { identity: { order: made.operation } };
    const operationId = histories.idOf(intent);
    const state = foldLog(await histories.log.readStream(`operation-${operationId}`)).get(operationId)?.state;
    if (state === undefined) await histories.plan(intent, { start: made.pick % 2 === 0 });
    else await histories.run(operationId, [commandFor(state, made, histories)]);
  }
  return histories;
}

/** Every event at least once, cut into batches, some of them repeated and some out of turn. */
function deliveries(events: readonly RecordedEvent[], sizes: readonly number[], again: readonly number[]): RecordedEvent[][] {
  const batches: RecordedEvent[][] = [];
  for (let from = 0, n = 0; from < events.length; n++) {
    const size = sizes[n % sizes.length]!;
    batches.push(events.slice(from, from + size));
    from += size;
  }
  for (const [n, index] of again.entries()) {
    const repeated = batches[index % batches.length]!;
    batches.splice((index * 7 + n) % (batches.length + 1), 0, repeated);
  }
  return batches;
}

describe('the status view (I9)', () => {
  it(`is the fold of the log after ${HISTORIES} random histories, however they are delivered`, async () => {
    const statuses = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(move, { minLength: 1, maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 }),
        fc.array(fc.nat({ max: 1_000 }), { maxLength: 6 }),
        async (moves, sizes, again) => {
          await database.pool.query('truncate onefold.operation_view');
          const histories = await live(moves);
          const events = await histories.events();
          const projection = new OperationProjection(database.pool, histories.log);
          for (const batch of deliveries(events, sizes, again)) await projection.handle(batch);
          const folded = foldLog(events);
          for (const { state } of folded.values()) statuses.add(state.status);
          expect(await digestOfView(database.pool)).toEqual(digestOfFold(folded));
        },
      ),
      // Ends the shrinking of a failure in time to tell of it.
      { numRuns: HISTORIES, interruptAfterTimeLimit: 25_000, markInterruptAsFailure: true },
    );
    // The histories are worth something only if they lead everywhere.
    expect([...statuses].sort()).toEqual(['executing', 'failed_final', 'failed_retryable', 'planned', 'succeeded', 'unknown']);
  });
});
