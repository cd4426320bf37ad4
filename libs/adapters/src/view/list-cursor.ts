import { createHash } from 'node:crypto';
import { InvalidCursor, type ListQuery } from '#domain';

/** Enough to tell one list from another; a cursor is no secret, and its position only ever leads into the same tenant's list. */
const FILTER_DIGITS = 16;
const CURSOR = /^v1:(\d{1,18}):([0-9a-f]{16})$/;

/** Says where the next page begins, in one list and no other: the position of the last operation shown, and a digest of the filters. */
export function writeCursor(query: ListQuery, position: bigint): string {
  return Buffer.from(`v1:${position}:${digestOfFilters(query)}`).toString('base64url');
}

/** @returns the position that the next page begins below. @throws InvalidCursor */
export function readCursor(query: ListQuery, cursor: string): bigint {
  const [, position, digest] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString('utf8')) ?? [];
  if (position === undefined) throw new InvalidCursor('The cursor is none that a list gave out; begin again without one.');
  if (digest !== digestOfFilters(query)) {
    throw new InvalidCursor('The cursor belongs to a list with other filters; begin again without one.');
  }
  return BigInt(position);
}

function digestOfFilters({ tenant, status, actionType, workflowId, term }: ListQuery): string {
  const filters = JSON.stringify([tenant, status, actionType, workflowId, term]);
  return createHash('sha256').update(filters).digest('hex').slice(0, FILTER_DIGITS);
}
