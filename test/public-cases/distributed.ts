import type { PublicCaseId } from './registry.js';

/** Parts of a case that take a broker, the separate services or another event log, and so are tested where those are. */
export interface ShownElsewhere {
  readonly case: PublicCaseId;
  readonly part: string;
  /** Below `test/`. */
  readonly file: string;
  /** How the title of the test names the case. */
  readonly named: string;
}

const STACK = 'e2e/distributed/faults.kafka.test.ts';
const FEED = 'libs/adapters/feed/kafka';
const EVENTSTOREDB = 'libs/adapters/event-store/eventstoredb/lost-answers.unit.test.ts';

export const SHOWN_ELSEWHERE: readonly ShownElsewhere[] = [
  { case: '5', part: 'a trip through Kafka', file: `${FEED}/delivering.kafka.test.ts`, named: '(public case 5)' },
  {
    ...{ case: '25', file: `${FEED}/sharing.kafka.test.ts`, named: '(public case 25)' },
    part: 'a kill between the handling of a record and the commit of its offset',
  },
  {
    ...{ case: '36', file: 'proof/faults/faults.kafka.test.ts', named: '(public case 36)' },
    part: 'a relay killed in the midst of publishing, before it, and after it',
  },
  { case: '37', part: 'the successor of a relay', file: 'apps/relay/relay.kafka.test.ts', named: '(public case 37)' },
  { case: '37', part: 'the age of the oldest event that is not published', file: STACK, named: '(public case 37)' },
  { case: '38', part: 'a rebalance while a handler runs', file: `${FEED}/sharing.kafka.test.ts`, named: '(public case 38)' },
  { case: '38', part: 'malformed records', file: STACK, named: '(public case 38)' },
  { case: '38', part: 'a group set back to the earliest offset', file: STACK, named: '(public cases 38, 39d)' },
  { case: '39', part: '(a) and (b) on EventStoreDB', file: EVENTSTOREDB, named: '(public case 39)' },
  { case: '39', part: '(d) a consumer group that begins again', file: STACK, named: '(public cases 38, 39d)' },
];
