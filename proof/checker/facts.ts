import type { KnownOperation, RecordedEvent } from '#domain';

/**
 * What was seen of a run, from outside: plain data, so that a simulation, whole processes and a stack can all fill them. What a run has
 * no way to see is left out; the invariants that need it are then listed as not checked.
 */
export interface Facts {
  /** The provider's own ledger, which is the truth about effects. */
  readonly ledger?: readonly LedgerCall[];
  /** The whole event log in the order of its positions (`EventLog.readAll`), read by a process that has taken no part. */
  readonly log?: readonly RecordedEvent[];
  /** The rows of the status view. */
  readonly view?: readonly ViewFact[];
  /** The view as built anew from the first event, at the same position. */
  readonly rebuiltView?: readonly ViewFact[];
  /** The records of the topic, by partition and offset. */
  readonly topic?: readonly TopicRecord[];
  readonly acknowledged?: readonly AcknowledgedCommand[];
  readonly subscribers?: readonly SubscriberFact[];
  /** Logs, metrics, traces, problem bodies. */
  readonly captured?: readonly CapturedText[];
  /** Texts that may stand nowhere in the clear: secrets and personal data planted for that. */
  readonly canaries?: readonly string[];
  /** Answers that callers got. */
  readonly answers?: readonly CapturedAnswer[];
  /** Texts by tenant that no other tenant may see. */
  readonly tenantMarks?: Readonly<Record<string, readonly string[]>>;
  readonly replay?: ReplayFact;
  readonly progress?: ProgressFact;
  /** Nothing is under way any more, no fault is on, and time has moved on as far as anything was waiting for. */
  readonly quiescent?: boolean;
  /** How far the clocks of ledger and log may be apart, and how late a sent request may arrive. */
  readonly skewMs?: number;
}

/** One call in the ledger, as `GET /lab/ledger?reference=` tells it (see `ledger-facts.ts`). */
export interface LedgerCall {
  readonly providerKey: string | null;
  readonly businessReference: string | null;
  readonly effect: boolean;
  /** The effect's id as the provider names it. */
  readonly id: string | null;
  readonly atMs: number;
  readonly mode: string;
  /** Digest of what was sent; null where the ledger keeps none. */
  readonly digest?: string | null;
}

export interface ViewFact {
  readonly operationId: string;
  readonly revision: number;
  readonly state: KnownOperation;
}

export interface TopicRecord {
  readonly partition: number;
  readonly offset: number;
  readonly eventId: string;
  readonly operationId: string;
  readonly revision: number;
  readonly tenant: string;
  /** The record as text: headers and value. */
  readonly text: string;
}

/** A command whose caller was told that it is taken. */
export interface AcknowledgedCommand {
  readonly operationId: string;
  readonly tenant: string;
  readonly command: 'plan' | 'cancel' | 'decide';
  /** Of a plan: the hash that the answer named, and the hash of what was submitted; both null where they are not known. */
  readonly answeredHash?: string | null;
  readonly submittedHash?: string | null;
  /** Of a plan: what was submitted as its intent, in one text; the same intent must always give the same operation. */
  readonly intent?: string;
  readonly businessReference?: string | null;
  /** Of a decision. */
  readonly decisionId?: string | null;
  readonly decision?: string;
}

export interface SubscriberFact {
  readonly name: string;
  /** Position up to which it has finished. */
  readonly cursor: bigint;
  /** Every position it was handed. */
  readonly delivered: ReadonlySet<bigint>;
}

export interface CapturedText {
  readonly source: string;
  readonly text: string;
}

export interface CapturedAnswer {
  readonly tenant: string;
  readonly text: string;
}

/** Calls the provider got while a view was rebuilt or events were handed over again. */
export interface ReplayFact {
  readonly calls: number;
  readonly lookUps: number;
  readonly webhooks: number;
}

/** How long it took from the last fault until everything was settled, and what that may take. */
export interface ProgressFact {
  readonly settledAfterMs: number | null;
  readonly boundMs: number;
  readonly watchdogAlarms: number;
}

export type InvariantId = `I${number}`;

export interface Violation {
  readonly invariant: InvariantId;
  /** What is wrong, in a sentence. */
  readonly what: string;
  readonly operationId: string | null;
  /** Operation, stream and ledger side by side, to be printed. */
  readonly picture: string;
}

/** What an invariant finds: the sentence, and the operation it is about. */
export interface Finding {
  readonly what: string;
  readonly operationId?: string | null;
}

/** One law over the facts. `needs` are the facts without which it says nothing. */
export interface Invariant {
  readonly id: InvariantId;
  readonly name: string;
  readonly needs: readonly (keyof Facts)[];
  check(world: World): Finding[];
}

/** The facts, with the indexes that most invariants want. */
export interface World {
  readonly facts: Facts;
  readonly operations: ReadonlyMap<string, OperationFacts>;
  /** Ledger calls that belong to no operation of the log. */
  readonly strayCalls: readonly LedgerCall[];
}

export interface OperationFacts {
  readonly operationId: string;
  readonly stream: readonly RecordedEvent[];
  /** Null where the stream does not begin as an operation. */
  readonly state: KnownOperation | null;
  readonly calls: readonly LedgerCall[];
}
