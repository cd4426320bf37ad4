import { randomBytes } from 'node:crypto';

/** Makes ids that no other run of the lab makes, at the cost of an addition: `po_5f1c0a9e_17`. */
export function idMaker(): (prefix: string) => string {
  const run = randomBytes(4).toString('hex');
  let last = 0;
  return (prefix) => `${prefix}_${run}_${(last += 1)}`;
}
