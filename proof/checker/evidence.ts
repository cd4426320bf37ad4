import type { OperationPolicy, RecordedEvent } from '#domain';
import type { Finding, Invariant, OperationFacts } from './facts.js';

/** Evidence that may end a doubt. `budget` is a conclusion from the absence of any doubt, and so is not one of them. */
const EVIDENCE = new Set(['response', 'late_response', 'already_done', 'lookup', 'webhook', 'person']);

/** I5: from `unknown` nothing leads on but evidence, a person, or a repetition that the provider declares harmless. */
const noReopening: Invariant = {
  id: 'I5',
  name: 'No reopening by time',
  needs: ['log'],
  check: ({ operations }) => [...operations.values()].flatMap((operation) => new Doubt(operation).findings()),
};

/** Reads one stream with the eyes of somebody who believes nothing but recorded evidence. */
class Doubt {
  private readonly found: Finding[] = [];
  private readonly policy: OperationPolicy | null;
  /** Attempts in doubt since the last proof. */
  private unresolved = new Set<number>();
  private absent = false;
  private granted = false;
  private storedError = false;
  private leaseUntilMs = 0;
  private lastSendMs = 0;
  /** What the attempt under way was allowed by. */
  private spent = { absent: false, granted: false };

  constructor(private readonly operation: OperationFacts) {
    const [first] = operation.stream;
    this.policy = first?.event.type === 'OperationPlanned' ? first.event.data.policy : null;
  }

  findings(): Finding[] {
    for (const recorded of this.operation.stream) this.take(recorded);
    return this.found;
  }

  private take({ event, metadata, revision }: RecordedEvent): void {
    const at = Date.parse(metadata.at);
    switch (event.type) {
      case 'AttemptStarted':
        if (this.unresolved.size > 0 && !this.mayRepeat(at, revision))
          this.report(`attempt ${event.data.attempt} reopened a doubt without evidence`);
        this.leaseUntilMs = this.lastSendMs = Date.parse(event.data.lease_until);
        this.spent = { absent: this.absent, granted: this.granted };
        this.absent = this.granted = false;
        return;
      case 'OutcomeUnknown':
        if (event.data.code === 'key_retention_passed') return;
        this.unresolved.add(event.data.attempt);
        this.storedError = (event.data.status ?? 0) >= 500;
        this.lastSendMs = event.data.code === 'lease_expired' ? this.leaseUntilMs : at;
        this.absent = this.granted = false;
        return;
      case 'AttemptNotSent':
        this.unresolved.delete(event.data.attempt);
        this.lastSendMs = Math.min(this.lastSendMs, at);
        // Nothing can have arrived: what allowed the attempt allows the next one still.
        if (!event.data.reached) ({ absent: this.absent, granted: this.granted } = this.spent);
        return;
      case 'OutcomeChecked':
        this.absent = event.data.verdict === 'absent' && event.data.proof;
        if (this.absent) this.proof(at);
        return;
      case 'ReviewDecided':
        this.granted = event.data.decision === 'retry_once';
        return;
      case 'EvidenceRecorded':
        if (event.data.verdict === 'failed' || event.data.verdict === 'not_sent') this.unresolved.delete(event.data.attempt);
        return;
      case 'OperationFailed':
        if (this.unresolved.size > 0 && !EVIDENCE.has(event.data.evidence)) this.report(`failed by ${event.data.evidence} out of a doubt`);
        return;
    }
  }

  /** Absence is proven only by asking after all that may have been sent has landed and would be seen. */
  private proof(atMs: number): void {
    const lookup = this.policy?.lookup;
    if (!lookup) this.report('absence was proven without a look-up');
    else if (atMs < this.lastSendMs + lookup.landing_ms + (lookup.consistent ? 0 : lookup.visibility_lag_ms)) {
      this.report('absence was taken for proven before the settle window had passed');
    }
    this.unresolved.clear();
  }

  private mayRepeat(atMs: number, revision: number): boolean {
    if (this.absent || this.granted || !this.policy) return true;
    const { same_key, on_unknown } = this.policy;
    if (!same_key || !on_unknown.includes('same_key_retry')) return false;
    if (same_key.by === 'reference') return true;
    return !this.storedError && atMs < keyDeadlineMs(this.operation.stream.slice(0, revision), same_key.retention_ms);
  }

  private report(what: string): void {
    this.found.push({ what, operationId: this.operation.operationId });
  }
}

/** When the provider may forget our key: its retention after the first send that it may have seen. */
function keyDeadlineMs(stream: readonly RecordedEvent[], retentionMs: number): number {
  let firstSeen: { attempt: number; atMs: number } | null = null;
  for (const { event, metadata } of stream) {
    if (event.type === 'AttemptStarted') firstSeen ??= { attempt: event.data.attempt, atMs: Date.parse(metadata.at) };
    if (event.type === 'AttemptNotSent' && !event.data.reached && firstSeen?.attempt === event.data.attempt) firstSeen = null;
  }
  return firstSeen === null ? Infinity : firstSeen.atMs + retentionMs;
}

/** Processes that may be asking at the same time: each of them was allowed to when it began. */
const LOOK_UPS_AT_ONCE_MAX = 4;

/** I14: never more than the policy allows, never past the provider's key deadline, never before its `Retry-After`. */
const budget: Invariant = {
  id: 'I14',
  name: 'Budget',
  needs: ['log'],
  check: ({ operations }) => [...operations.values()].flatMap(budgetFindings),
};

function budgetFindings({ stream, operationId }: OperationFacts): Finding[] {
  const [first] = stream;
  if (first?.event.type !== 'OperationPlanned') return [];
  const { policy } = first.event.data;
  const findings: Finding[] = [];
  const report = (what: string) => findings.push({ what, operationId });
  const grants = stream.filter(({ event }) => event.type === 'ReviewDecided' && event.data.decision === 'retry_once').length;
  const attempts = stream.filter(({ event }) => event.type === 'AttemptStarted').length;
  if (attempts > policy.max_attempts + grants) report(`${attempts} attempts, and ${policy.max_attempts} are allowed`);
  let checks = 0;
  let requested = 0;
  let ambiguous = false;
  let retryAtMs = 0;
  stream.forEach(({ event, metadata, revision }) => {
    const at = Date.parse(metadata.at);
    // A key that is too old puts no send in doubt (public case 34: absent after a 429, so it may be sent again).
    if (event.type === 'OutcomeUnknown' && event.data.code !== 'key_retention_passed') ambiguous = true;
    if (event.type === 'AttemptNotSent') retryAtMs = Date.parse(event.data.retry_at);
    // A person who grants a retry means now.
    if (event.type === 'ReviewDecided' && event.data.decision === 'retry_once') retryAtMs = 0;
    if (event.type === 'CheckRequested') requested++;
    if (event.type === 'OutcomeChecked' && ++checks > (policy.lookup?.max_checks ?? 0) + requested + LOOK_UPS_AT_ONCE_MAX)
      report(`look-up ${checks} is one too many`);
    if (event.type !== 'AttemptStarted') return;
    checks = requested = 0;
    if (at < retryAtMs) report(`attempt ${event.data.attempt} came before the time it was told to wait for`);
    const byKey = policy.same_key?.by === 'key' ? policy.same_key : null;
    if (ambiguous && byKey && at >= keyDeadlineMs(stream.slice(0, revision), byKey.retention_ms)) {
      report(`attempt ${event.data.attempt} was sent after the provider's key deadline`);
    }
    retryAtMs = 0;
  });
  return findings;
}

/** I17: each decision says who, why, on what evidence and on which revision; only an open review can be decided. */
const accountability: Invariant = {
  id: 'I17',
  name: 'Accountability',
  needs: ['log'],
  check: ({ operations }) => [...operations.values()].flatMap(accountFindings),
};

function accountFindings({ stream, operationId }: OperationFacts): Finding[] {
  let open = false;
  const inDoubt = new Set<number>();
  return stream.flatMap(({ event, revision }, index): Finding[] => {
    if (event.type === 'ReviewRequested') open = true;
    if (event.type === 'OutcomeUnknown') inDoubt.add(event.data.attempt);
    if (event.type === 'AttemptNotSent') inDoubt.delete(event.data.attempt);
    if (event.type === 'OutcomeChecked' && event.data.proof) inDoubt.clear();
    // What settles the operation, or its last doubt, ends the review of it.
    const settled =
      ['OperationSucceeded', 'OperationFailed'].includes(event.type) || (event.type === 'AttemptNotSent' && inDoubt.size === 0);
    if (settled) open = false;
    if (event.type !== 'ReviewDecided') return [];
    const { actor, reason, evidence, decision, based_on_revision } = event.data;
    const faults: string[] = [];
    if (!open) faults.push('decides no open review');
    open = false;
    if (actor.trim() === '') faults.push('has no actor');
    if (reason.trim() === '') faults.push('has no reason');
    if (based_on_revision !== revision - 1) faults.push(`was based on revision ${based_on_revision} and stands at ${revision}`);
    const next = stream[index + 1]?.event;
    const named = next?.type === 'OperationSucceeded' && next.data.provider_operation_id !== null;
    const needsEvidence = decision === 'did_not_happen' || (decision === 'happened' && !named);
    if (needsEvidence && !evidence?.trim()) faults.push('has no evidence');
    return faults.map((fault) => ({ what: `the decision at revision ${revision} ${fault}`, operationId }));
  });
}

export const evidenceInvariants: readonly Invariant[] = [noReopening, budget, accountability];
