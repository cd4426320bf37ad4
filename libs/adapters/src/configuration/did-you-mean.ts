/** A slip of the finger changes a third of a word at most; what differs more is another word. */
const SIMILAR_SHARE = 3;
/** Longer names are not compared: the cost grows with the product of both lengths. */
const COMPARED_LENGTH_MAX = 64;

/** The known word that was probably meant, as the end of a way out; else what is known. */
export function didYouMean(word: string, known: readonly string[]): string {
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: distanceBetween(word, candidate) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(Math.max(word.length, candidate.length) / SIMILAR_SHARE)))
    .sort((one, other) => one.distance - other.distance);
  if (nearest) return `Did you mean "${nearest.candidate}"?`;
  return known.length === 0 ? 'Remove it.' : `Known: ${known.join(', ')}.`;
}

/** Letters to change, add, drop or swap with a neighbour (optimal string alignment distance). */
function distanceBetween(one: string, other: string): number {
  if (one.length > COMPARED_LENGTH_MAX || other.length > COMPARED_LENGTH_MAX) return Infinity;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const same = one[row - 1] === other[column - 1] ? 0 : 1;
      let best = Math.min(previous[column]! + 1, current[column - 1]! + 1, previous[column - 1]! + same);
      const swapped = row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      if (swapped) best = Math.min(best, beforePrevious[column - 2]! + 1);
      current.push(best);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[other.length]!;
}
