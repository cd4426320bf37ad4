import { FieldFault, flagOf, integerOf, objectOf, textOf, wordOf } from './fields.js';
import { actsAtRecipient, allModes, httpModes, isLegalAt, smtpModes, type Mode, type Moment } from './modes.js';
import { providerClasses, type LabClass } from './provider-classes.js';
import { bareReference } from './references.js';

/** How the next matching calls behave. */
export interface Script {
  /** Number given by the lab; a ledger entry's line names it, so that a restart knows what is used up. */
  readonly id: number;
  readonly reference: string | null;
  readonly class: LabClass | null;
  readonly mode: Mode;
  /** Calls it is still good for; null: until reset. */
  timesLeft: number | null;
  readonly delayMs: number;
  readonly retryAfterSeconds: number;
  /** Only `SAVED_500` may be told not to have an effect. */
  readonly effect: boolean;
}

/** More than any test needs, and few enough that a runaway client cannot fill the memory. */
const maxScripts = 100_000;
/** As long as an unanswered call is held at most: a later answer would reach nobody. */
export const maxDelayMs = 600_000;
/** Long enough that a caller with a short time-out gives up and looks first. */
const initialLandingDelayMs = 1_500;

const labClasses: readonly LabClass[] = [...providerClasses, 'smtp'];

/** Reads the body of `PUT /lab/script`. Throws {@link FieldFault}. */
export function readScript(body: unknown, id: number): Script {
  const fields = objectOf(body, 'body', ['match', 'mode', 'times', 'delay_ms', 'retry_after_seconds', 'effect']);
  const match = objectOf(fields.match ?? {}, 'match', ['reference', 'class']);
  const reference = textOf(match, 'reference', 255, null);
  const labClass = wordOf(match, 'class', labClasses, null);
  const mode = wordOf(fields, 'mode', allModes, null);
  if (mode === null) throw new FieldFault('mode', 'is required', allModes);
  checkMode(mode, labClass, reference);
  if (fields.effect !== undefined && mode !== 'SAVED_500') throw new FieldFault('effect', 'may be set only with mode SAVED_500');
  if (fields.retry_after_seconds !== undefined && mode !== 'R429') {
    throw new FieldFault('retry_after_seconds', 'may be set only with mode R429');
  }
  const times = fields.times === null ? 0 : integerOf(fields, 'times', 0, 1_000_000, 1);
  return {
    id,
    reference: reference === null ? null : bareReference(reference),
    class: labClass,
    mode,
    timesLeft: times === 0 ? null : times,
    delayMs: integerOf(fields, 'delay_ms', 0, maxDelayMs, mode === 'LATE_LANDING' ? initialLandingDelayMs : 0),
    retryAfterSeconds: integerOf(fields, 'retry_after_seconds', 0, 3_600, 1),
    effect: flagOf(fields, 'effect', true),
  };
}

function checkMode(mode: Mode, labClass: LabClass | null, reference: string | null): void {
  if (labClass !== null) {
    const allowed: readonly Mode[] = labClass === 'smtp' ? smtpModes : httpModes;
    if (!allowed.includes(mode)) throw new FieldFault('mode', `is not a mode of class ${labClass}`, allowed);
  }
  const onlyMail = labClass === 'smtp' || !httpModes.some((known) => known === mode);
  if (onlyMail && reference !== null && actsAtRecipient(mode)) {
    throw new FieldFault('match.reference', `cannot be matched by ${mode}: before DATA a mail has no reference; match {"class": "smtp"}`);
  }
}

export function scriptJson(script: Script): Record<string, unknown> {
  return {
    id: script.id,
    match: {
      ...(script.reference === null ? {} : { reference: script.reference }),
      ...(script.class === null ? {} : { class: script.class }),
    },
    mode: script.mode,
    times: script.timesLeft,
    delay_ms: script.delayMs,
    ...(script.mode === 'R429' ? { retry_after_seconds: script.retryAfterSeconds } : {}),
    ...(script.mode === 'SAVED_500' ? { effect: script.effect } : {}),
  };
}

const specificity = (script: Script): number => (script.reference === null ? 0 : 2) + (script.class === null ? 0 : 1);
const sameMatch = (one: Script, other: Script): boolean => one.reference === other.reference && one.class === other.class;

/** The scripts that wait for calls: more specific first, then in order of arrival. */
export class ScriptBook {
  private readonly byReference = new Map<string, Script[]>();
  /** Scripts that name no reference, under their class or null. */
  private readonly general = new Map<LabClass | null, Script[]>();
  private readonly byId = new Map<number, Script>();
  private lastId = 0;

  nextId(): number {
    return this.lastId + 1;
  }

  /** Adds a script. It replaces an unlimited one with the same match, which would else hide it for ever. */
  add(script: Script): void {
    if (this.byId.size >= maxScripts) throw new FieldFault('body', `is one script too many: at most ${maxScripts} wait at a time`);
    this.lastId = Math.max(this.lastId, script.id);
    const list = this.listOf(script);
    for (const other of list.filter((waiting) => waiting.timesLeft === null && sameMatch(waiting, script))) this.remove(other);
    this.byId.set(script.id, script);
    this.listOf(script).push(script);
  }

  /** The script for a call, not yet used up: see {@link use}. */
  find(moment: Moment, labClass: LabClass, references: readonly (string | null)[]): Script | null {
    if (this.byId.size === 0) return null;
    let best: Script | null = null;
    for (const reference of references) {
      if (reference === null) continue;
      for (const script of this.byReference.get(bareReference(reference)) ?? []) {
        if ((script.class === null || script.class === labClass) && isLegalAt(moment, script.mode)) best = better(best, script);
      }
    }
    if (best !== null) return best;
    const legal = (script: Script): boolean => isLegalAt(moment, script.mode);
    return this.general.get(labClass)?.find(legal) ?? this.general.get(null)?.find(legal) ?? null;
  }

  /** True when a script waits for a reference other than this one. */
  waitsForOther(reference: string | null): boolean {
    const own = reference !== null && this.byReference.has(bareReference(reference)) ? 1 : 0;
    return this.byReference.size > own;
  }

  /** Counts one call against a script; an unknown id is one that is used up already. */
  use(id: number): void {
    const script = this.byId.get(id);
    if (script === undefined || script.timesLeft === null) return;
    script.timesLeft -= 1;
    if (script.timesLeft === 0) this.remove(script);
  }

  clear(): void {
    this.byReference.clear();
    this.general.clear();
    this.byId.clear();
  }

  private listOf(script: Script): Script[] {
    return script.reference === null ? listUnder(this.general, script.class) : listUnder(this.byReference, script.reference);
  }

  private remove(script: Script): void {
    this.byId.delete(script.id);
    const list = this.listOf(script);
    list.splice(list.indexOf(script), 1);
    if (list.length === 0 && script.reference !== null) this.byReference.delete(script.reference);
  }
}

function better(best: Script | null, script: Script): Script {
  if (best === null) return script;
  const gain = specificity(script) - specificity(best);
  return gain > 0 || (gain === 0 && script.id < best.id) ? script : best;
}

function listUnder<K>(lists: Map<K, Script[]>, key: K): Script[] {
  let list = lists.get(key);
  if (list === undefined) lists.set(key, (list = []));
  return list;
}
