import type { Backoff } from '#domain';
import type { Section } from './section.js';

const DAY_MS = 86_400_000;

export interface InitialBackoff {
  readonly initialMs: number;
  readonly factor: number;
  readonly maxMs: number;
}

/** Reads `backoff` of a section. The jitter is always full; the member exists so that the file says so. */
export function readBackoff(section: Section, { initialMs, factor, maxMs }: InitialBackoff): Backoff {
  const backoff = section.section('backoff');
  if (!backoff) return { initial_ms: initialMs, factor, max_ms: maxMs };
  const initial = backoff.duration('initial', initialMs, { min: 1, max: DAY_MS });
  const read = {
    initial_ms: initial,
    factor: backoff.number('factor', factor, { min: 1, max: 10 }, 'number'),
    max_ms: backoff.duration('max', Math.max(maxMs, initial), { min: 1, max: DAY_MS }),
  };
  backoff.word('jitter', ['full'], 'full');
  if (read.max_ms < read.initial_ms) backoff.fault('max', 'Must not be shorter than initial.', 'Lengthen max or shorten initial.');
  backoff.end();
  return read;
}
