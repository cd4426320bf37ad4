import { Problem } from '../problems/problem.js';

/** The strong ETag of an operation: its revision (RFC 9110 section 8.8.3). */
export function etagOf(revision: number): string {
  return `"${revision}"`;
}

const ENTITY_TAG = /^\s*(W\/)?"([\x21\x23-\x7e]*)"\s*$/;

/** Whether `If-None-Match` names this revision: weak comparison, a list or `*` (RFC 9110 section 13.1.2). */
export function matchesNone(ifNoneMatch: string | undefined, revision: number): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((tag) => ENTITY_TAG.exec(tag)?.[2] === String(revision));
}

/** Of no operation: what a well-formed ETag that we never gave out is compared as. */
const NO_REVISION = -1;

/**
 * The revision that a decision was based on. `*` is refused: deciding needs to have looked. A weak tag never matches (strong comparison,
 * RFC 9110 section 13.1.1).
 * @throws Problem if_match_required, if_match_invalid
 */
export function expectedRevision(ifMatch: string | undefined): number {
  if (ifMatch === undefined) throw new Problem('if_match_required');
  const tag = ENTITY_TAG.exec(ifMatch);
  if (!tag)
    throw new Problem('if_match_invalid', { errors: [{ header: 'If-Match', code: 'if_match_invalid', rule: 'Exactly one ETag.' }] });
  const [, weak, opaque] = tag;
  return !weak && /^(?:0|[1-9]\d{0,14})$/.test(opaque!) ? Number(opaque) : NO_REVISION;
}
