import { describe, expect, it } from 'vitest';
import { readArguments, UsageError } from '../../../proof/chaos/arguments.js';

describe('npm run chaos', () => {
  it('takes how many operations, for how long, and a seed', () => {
    expect(readArguments(['--operations', '50000', '--minutes', '20', '--seed', '9'], 1)).toEqual({
      operations: 50_000,
      minutes: 20,
      seed: 9,
    });
    expect(readArguments([], 4_711)).toEqual({ operations: 1_000, minutes: 2, seed: 4_711 });
    expect(readArguments(['--minutes', '0.5'], 1).minutes).toBe(0.5);
  });

  it.each([
    [['--operations', '0'], /--operations takes numbers from 1 to 200000/],
    [['--operations', '1e3'], /--operations/],
    [['--operations', '10.5'], /--operations/],
    [['--minutes', '0.4'], /--minutes takes numbers from 0.5 to 240/],
    [['--minutes', '241'], /--minutes/],
    [['--seed', '4294967296'], /--seed/],
    [['--nonsense'], /nonsense/],
    [['more'], /more/],
  ])('refuses %j', (args, message) => {
    expect(() => readArguments(args, 1)).toThrow(UsageError);
    expect(() => readArguments(args, 1)).toThrow(message);
  });
});
