import fc, { type IProperty } from 'fast-check';

/** Checks a property on the same examples each time. A failure prints seed, path and the smallest counterexample. */
export function seeded<T>(property: IProperty<T>, { numRuns = 500, seed = 20260105 } = {}): void {
  fc.assert(property, { seed, numRuns });
}
