import type { OperationEvent } from '#domain';

export const PROVIDER_CLASSES = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
export type ProviderClass = (typeof PROVIDER_CLASSES)[number];

/** The ports at which a process can be made to die; `decorate.ts` and `decorate-relay.ts` wrap them. */
export type Port =
  | 'http.answer'
  | 'sealer.newDataKey'
  | 'log.append'
  | 'log.readStream'
  | 'log.readStreams'
  | 'dataKeys.load'
  | 'dueWork.take'
  | 'dueWork.set'
  | 'provider.call'
  | 'provider.lookUp'
  | 'checkpoints.advance'
  | 'view.write'
  | 'publisher.publish';

/** `during`: the statement or the request has been handed over, and its answer has not been heard. */
export type Moment = 'before' | 'during' | 'after';

/** What a case does besides submitting: a point that lies behind a command of a person needs that command. */
export type Deed = 'submit' | 'repeat' | 'cancel' | 'reconcile' | 'resolve' | 'outlive_the_lease';

/** The processes that are made to die: everything on one machine in one, or the relay beside it. */
export const DOOMED_PROCESSES = ['standalone', 'relay'] as const;
export type DoomedProcess = (typeof DOOMED_PROCESSES)[number];

export interface CrashPoint {
  /** `port[.detail].moment`. */
  readonly name: string;
  /** The item of the list of crash points in `faults.md` that it stands for. */
  readonly item: FaultsItem;
  /** The one that passes it. */
  readonly process: DoomedProcess;
  readonly port: Port;
  readonly moment: Moment;
  /** The event type, consumer or HTTP method that is meant; null: any. */
  readonly detail: string | null;
  /** The provider classes with which it can be reached. */
  readonly classes: readonly ProviderClass[];
  /** The class it is aimed at: the one that forgives least among those that get there in an instructive state. */
  readonly aim: ProviderClass;
  readonly deed: Deed;
}

/** The crash points as the design names them, in its order. */
export const FAULTS_ITEMS = [
  'after validate',
  'after key lookup',
  'before append',
  'after append before answer',
  'after answer',
  'relay before publish',
  'after publish before mark',
  'consumer before claim',
  'after claim before attempt event',
  'after attempt event before send',
  'mid-send',
  'after provider answer before outcome event',
  'after outcome event before ack',
  'projector before write',
  'after write before cursor',
  'lookup before/after evidence event',
  'review decision before/after event',
  'webhook before/after record',
] as const;
export type FaultsItem = (typeof FAULTS_ITEMS)[number];

/** Items that no process passes, each with the reason. */
export const WITHOUT_POINTS: Readonly<Partial<Record<FaultsItem, string>>> = {
  'webhook before/after record': 'Webhooks do not come in yet.',
};

const ALL = PROVIDER_CLASSES;
const WITH_LOOKUP: readonly ProviderClass[] = ['a', 'b', 'c', 'd'];
/** Where an operation rests in doubt long enough for a person to ask for a look-up. */
const IN_DOUBT_FOR_A_WHILE: readonly ProviderClass[] = ['b', 'c', 'd'];
/** Without key, look-up and reference every doubt comes before a person. */
const REVIEWED: readonly ProviderClass[] = ['f'];
/** Where somebody else settles what a frozen process had begun. */
const SETTLED_BY_OTHERS: readonly ProviderClass[] = ['a', 'b', 'c', 'd', 'e'];

/**
 * The relay does not know whose provider an event is of, so that the cases of other classes would be the same ones again. This class has
 * the longest streams: a late landing, look-ups and repeated attempts, whose order the topic must keep.
 */
const CARRIED: readonly ProviderClass[] = ['c'];

type Options = Partial<Pick<CrashPoint, 'detail' | 'classes' | 'deed' | 'process'>> & { readonly aim?: ProviderClass };

function points(item: FaultsItem, port: Port, moments: readonly Moment[], options: Options = {}): CrashPoint[] {
  const { detail = null, classes = ALL, deed = 'submit', process = 'standalone' } = options;
  const { aim = classes.includes('c') ? 'c' : classes[0]! } = options;
  return moments.map((moment) => ({
    name: [port, detail, moment].filter((part) => part !== null).join('.'),
    ...{ item, process, port, moment, detail, classes, aim, deed },
  }));
}

const BOTH: readonly Moment[] = ['before', 'after'];
const THROUGHOUT: readonly Moment[] = ['before', 'during', 'after'];
const RELAYED: Options = { process: 'relay', classes: CARRIED };

type AppendedType = OperationEvent['type'];

/** Every event type there is: a new one does not compile until somebody has decided where its crash points belong. */
const APPENDS: Readonly<Record<AppendedType, readonly CrashPoint[]>> = {
  OperationPlanned: [
    ...points('before append', 'log.append', ['before', 'during'], { detail: 'OperationPlanned', aim: 'f' }),
    ...points('after append before answer', 'log.append', ['after'], { detail: 'OperationPlanned', aim: 'f' }),
  ],
  AttemptStarted: [
    ...points('after claim before attempt event', 'log.append', ['before', 'during'], { detail: 'AttemptStarted' }),
    ...points('after attempt event before send', 'log.append', ['after'], { detail: 'AttemptStarted' }),
  ],
  OperationSucceeded: [
    ...points('after provider answer before outcome event', 'log.append', ['before', 'during'], { detail: 'OperationSucceeded', aim: 'e' }),
    ...points('after outcome event before ack', 'log.append', ['after'], { detail: 'OperationSucceeded', aim: 'e' }),
  ],
  AttemptNotSent: [
    ...points('after provider answer before outcome event', 'log.append', ['before'], { detail: 'AttemptNotSent', aim: 'f' }),
    ...points('after outcome event before ack', 'log.append', ['after'], { detail: 'AttemptNotSent', aim: 'f' }),
  ],
  OperationFailed: [
    ...points('after provider answer before outcome event', 'log.append', ['before'], { detail: 'OperationFailed', aim: 'd' }),
    ...points('after outcome event before ack', 'log.append', ['after'], { detail: 'OperationFailed', aim: 'd' }),
  ],
  OutcomeUnknown: [
    ...points('after provider answer before outcome event', 'log.append', ['before'], { detail: 'OutcomeUnknown', aim: 'a' }),
    ...points('after outcome event before ack', 'log.append', ['after'], { detail: 'OutcomeUnknown', aim: 'a' }),
  ],
  OutcomeChecked: points('lookup before/after evidence event', 'log.append', THROUGHOUT, {
    ...{ detail: 'OutcomeChecked', classes: WITH_LOOKUP, aim: 'd' },
  }),
  EvidenceRecorded: points('after outcome event before ack', 'log.append', BOTH, {
    ...{ detail: 'EvidenceRecorded', classes: SETTLED_BY_OTHERS, deed: 'outlive_the_lease' },
  }),
  ReviewRequested: points('after outcome event before ack', 'log.append', BOTH, { detail: 'ReviewRequested', classes: REVIEWED }),
  ReviewDecided: points('review decision before/after event', 'log.append', THROUGHOUT, {
    ...{ detail: 'ReviewDecided', classes: REVIEWED, deed: 'resolve' },
  }),
  CheckRequested: points('review decision before/after event', 'log.append', BOTH, {
    ...{ detail: 'CheckRequested', classes: IN_DOUBT_FOR_A_WHILE, deed: 'reconcile' },
  }),
  OperationCancelled: points('review decision before/after event', 'log.append', BOTH, {
    ...{ detail: 'OperationCancelled', deed: 'cancel', aim: 'f' },
  }),
};

/** Every place where a process of today's product can be made to die. Nothing in the product knows of them. */
export const CRASH_POINTS: readonly CrashPoint[] = [
  ...points('after validate', 'sealer.newDataKey', ['before'], { aim: 'f' }),
  ...points('after key lookup', 'log.readStream', BOTH, { deed: 'repeat', aim: 'b' }),
  ...points('after append before answer', 'http.answer', ['before'], { detail: 'POST', aim: 'f' }),
  ...points('after answer', 'http.answer', ['after'], { detail: 'POST', aim: 'f' }),
  ...points('consumer before claim', 'dueWork.take', ['before'], { aim: 'e' }),
  ...points('after claim before attempt event', 'dueWork.take', ['after']),
  ...points('after claim before attempt event', 'log.readStreams', BOTH, { aim: 'd' }),
  ...points('after claim before attempt event', 'dataKeys.load', BOTH, { aim: 'f' }),
  ...points('after outcome event before ack', 'dueWork.set', BOTH, { aim: 'b' }),
  ...points('after attempt event before send', 'provider.call', ['before']),
  ...points('mid-send', 'provider.call', ['during'], { aim: 'd' }),
  ...points('after provider answer before outcome event', 'provider.call', ['after']),
  ...points('lookup before/after evidence event', 'provider.lookUp', THROUGHOUT, { classes: WITH_LOOKUP }),
  ...points('projector before write', 'view.write', ['before'], { aim: 'a' }),
  ...points('after write before cursor', 'view.write', ['after'], { aim: 'a' }),
  ...points('after write before cursor', 'checkpoints.advance', BOTH, { detail: 'operation-view', aim: 'b' }),
  ...points('after write before cursor', 'checkpoints.advance', BOTH, { detail: 'due-work', aim: 'e' }),
  ...Object.values(APPENDS).flat(),
  ...points('relay before publish', 'publisher.publish', ['before'], RELAYED),
  ...points('after publish before mark', 'publisher.publish', ['during', 'after'], RELAYED),
  ...points('after publish before mark', 'checkpoints.advance', THROUGHOUT, { ...RELAYED, detail: 'relay' }),
];

export function crashPoint(name: string): CrashPoint | undefined {
  return CRASH_POINTS.find((point) => point.name === name);
}

/** Whether a point is the place that a process has come to. */
export function isAt({ port, moment, detail }: CrashPoint, reachedPort: Port, reachedMoment: Moment, details: readonly string[]): boolean {
  return port === reachedPort && moment === reachedMoment && (detail === null || details.includes(detail));
}
