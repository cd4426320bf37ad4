import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SHOWN_ELSEWHERE } from './distributed.js';
import { NOT_BUILT } from './not-built.js';
import { PUBLIC_CASES, publicCase, type PublicCaseId } from './registry.js';

const folder = new URL('.', import.meta.url);
const all = Object.keys(PUBLIC_CASES) as PublicCaseId[];

/** The cases that the tests of this folder name, by their only way to do so. */
function namedByTests(): ReadonlySet<string> {
  const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts') && !name.startsWith('registry.'));
  const texts = files.map((name) => readFileSync(new URL(name, folder), 'utf8'));
  return new Set(texts.flatMap((text) => [...text.matchAll(/(?:describe|it)\(publicCase\('(\w+)'\)/g)].map(([, id]) => id!)));
}

describe('the list of public cases', () => {
  const named = namedByTests();
  const untestable = new Set<string>(NOT_BUILT.filter(({ tested }) => tested === 'none').map(({ case: id }) => id));

  it.each(all)('%s is tested or named as not built', (id) => {
    expect(named.has(id) || untestable.has(id), publicCase(id)).toBe(true);
  });

  it.each(SHOWN_ELSEWHERE)('$case, $part, is named by a test of $file', ({ file, named: title }) => {
    const text = readFileSync(new URL(`../${file}`, folder), 'utf8');
    expect(text.split('\n').filter((line) => line.includes(title) && /^ *(?:it\(|')/.test(line))).not.toEqual([]);
  });

  it('says "none" only of what no test names, and "part" only of what one does', () => {
    for (const { case: id, tested } of NOT_BUILT) expect(named.has(id), publicCase(id)).toBe(tested === 'part');
  });

  it('has 39 cases, and the table each of them at most once', () => {
    expect(all).toHaveLength(39);
    const listed = NOT_BUILT.map(({ case: id }) => id);
    expect(new Set(listed).size).toBe(listed.length);
  });
});
