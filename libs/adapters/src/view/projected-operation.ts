import { evolve, initialState, SEARCH_TERM_LENGTH_MAX, type KnownOperation, type OperationState, type RecordedEvent } from '#domain';

/** One operation as far as its events have been folded. */
export interface ProjectedOperation {
  /** Revision of the last event folded in, whether or not it changed the state. */
  readonly revision: number;
  /** Position of the first event: the order of lists. */
  readonly position: bigint;
  readonly state: OperationState;
}

/** Before the first event. */
export const NOTHING_YET: ProjectedOperation = { revision: -1, position: 0n, state: initialState };

/**
 * Folds a run of events of one stream on top of what is known. Events that are folded in already are skipped.
 * @returns null at a gap: an event between what is known and the next one is missing, and nothing may be guessed
 */
export function foldOnto(known: ProjectedOperation, events: readonly RecordedEvent[]): ProjectedOperation | null {
  let { revision, position, state } = known;
  for (const { event, metadata, ...stored } of events) {
    if (stored.revision <= revision) continue;
    if (stored.revision !== revision + 1) return null;
    if (stored.revision === 0) position = stored.position;
    revision = stored.revision;
    state = evolve(state, event, { tenant: metadata.tenant, atMs: Date.parse(metadata.at), revision });
  }
  return revision === known.revision ? known : { revision, position, state };
}

/** The terms of a row travel as lines, and PostgreSQL's text takes no NUL: no identity value and no sane id has such a character. */
// eslint-disable-next-line no-control-regex
const CONTROL_CHARACTER = /[\u0000-\u001f]/;

/** What lists find an operation by; the same function makes a search's term. Null for what no operation is found by. */
export function searchTerm(tenant: string, kind: 'action' | 'id', value: string | number): string | null {
  const text = String(value);
  if (text.length === 0 || text.length > SEARCH_TERM_LENGTH_MAX || CONTROL_CHARACTER.test(text)) return null;
  return `${tenant}/${kind === 'action' ? 'a' : 'i'}/${text}`;
}

/** The search terms of an operation, told by its state alone, without repetitions. In plain loops: this runs for each row written. */
export function termsOf(state: KnownOperation): string[] {
  const { facts, history } = state;
  const terms: string[] = [];
  const add = (kind: 'action' | 'id', value: string | number | null | undefined) => {
    const term = value === null || value === undefined ? null : searchTerm(facts.tenant, kind, value);
    if (term !== null && !terms.includes(term)) terms.push(term);
  };
  add('action', facts.actionType);
  for (const field in facts.identity) add('id', facts.identity[field]);
  if (state.status === 'succeeded') add('id', state.providerOperationId);
  add('id', history.provenEffect?.providerOperationId);
  return terms;
}

/** The identity's `workflow_id`, which has a filter of its own. */
export function workflowIdOf({ facts }: KnownOperation): string | null {
  const { workflow_id } = facts.identity;
  return workflow_id === undefined ? null : String(workflow_id);
}
