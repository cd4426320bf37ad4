import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JSON_DEPTH_MAX, parseStrictJson } from '#domain';
import { seeded } from '../support/seeded.js';

const faultOf = (text: string) => parseStrictJson(text).fault;
const valueOf = (text: string) => {
  const parsed = parseStrictJson(text);
  if (parsed.fault) throw new Error(`refused: ${parsed.fault.code} at "${parsed.fault.pointer}"`);
  return parsed.value;
};

describe('strict JSON', () => {
  it.each([
    ['{"a":1,"a":2}', '/a'],
    ['{"a":1,"\\u0061":2}', '/a'],
    ['{"x":[{"k":0},{"b":1,"c":2,"b":3}]}', '/x/1/b'],
    ['{"":1,"":2}', '/'],
    ['{"a/b~c":1,"a\\/b~c":2}', '/a~1b~0c'],
    ['{"__proto__":1,"__proto__":2}', '/__proto__'],
    ['{"a":{"b":1},"a":{"b":1}}', '/a'],
    ['{"\\ud83d\\ude00":1,"😀":2}', '/😀'],
  ])('refuses the duplicate member in %s', (text, pointer) => {
    expect(faultOf(text)).toMatchObject({ code: 'duplicate_member', pointer });
  });

  it.each(['{"a":{"a":{"a":1}},"b":{"a":2}}', '[{"a":1},{"a":1}]', '{"a":"a","b":"a"}', '{"a":["a","a"]}', '{"a\\"":1,"a":2}'])(
    'takes %s, where no object has a name twice',
    (text) => {
      expect(valueOf(text)).toEqual(JSON.parse(text));
    },
  );

  it.each([
    ['"\\ud800"', ''],
    ['{"a":"x\\udc00"}', '/a'],
    ['["ok","\\ud83d\\u0041"]', '/1'],
    ['["\\ude00\\ud83d"]', '/0'],
    ['{"\\ud800":1}', '/\ud800'],
    ['{"a":"\ud800"}', '/a'],
  ])('refuses the lone surrogate in %j', (text, pointer) => {
    expect(faultOf(text)).toMatchObject({ code: 'lone_surrogate', pointer });
  });

  it.each(['"😀"', '"\\ud83d\\ude00"', '"\ud83d\\ude00"', '"\\\\ud800"', '"\\uffff\\ue000"'])(
    'takes the whole characters of %j',
    (text) => {
      expect(valueOf(text)).toBe(JSON.parse(text));
    },
  );

  it.each([
    ['{"account":9196877626998784}', '/account'],
    ['[9007199254740992]', '/0'],
    ['[-9007199254740992]', '/0'],
    ['[9007199254740993.0]', '/0'],
    ['[1e300]', '/0'],
    ['[90071992547409930e-1]', '/0'],
    ['1e400', ''],
    ['[0,-1E+400]', '/1'],
  ])('refuses the number in %s, which a double cannot tell from its neighbours', (text, pointer) => {
    expect(faultOf(text)).toMatchObject({ code: 'number_out_of_range', pointer });
  });

  it.each([
    ['9007199254740991', 9007199254740991],
    ['-9007199254740991', -9007199254740991],
    ['1.0', 1],
    ['1e0', 1],
    ['9.007199254740991e15', 9007199254740991],
    ['-0', -0],
    ['0.1', 0.1],
    ['1e-300', 1e-300],
  ])('takes the number %s', (text, value) => {
    expect(valueOf(text)).toBe(value);
  });

  it(`takes ${JSON_DEPTH_MAX} levels and refuses one more`, () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(valueOf(nested(JSON_DEPTH_MAX))).toBeDefined();
    expect(faultOf(nested(JSON_DEPTH_MAX + 1))).toMatchObject({ code: 'too_deep', pointer: '/0'.repeat(JSON_DEPTH_MAX) });
    expect(faultOf('{"a":'.repeat(JSON_DEPTH_MAX + 1))).toMatchObject({ code: 'too_deep' });
    expect(valueOf(`[${'[],'.repeat(100)}{}]`)).toHaveLength(101);
  });

  it.each([
    '',
    ' ',
    '{',
    '{"a":1,}',
    "{'a':1}",
    '{"a":1}{"a":2}',
    '[1,]',
    '01',
    '+1',
    '.5',
    'NaN',
    '"\\x41"',
    '"',
    '"\u0000"',
    '-',
    ']',
    '\u00a01',
  ])('refuses %j, which is not JSON', (text) => {
    expect(faultOf(text)).toMatchObject({ code: 'malformed_json', pointer: '' });
  });

  it('says where a text stops being JSON, without quoting it', () => {
    const rule = faultOf('{"password":"hunter2",x}')!.rule;
    expect(rule).not.toContain('hunter2');
    expect(rule).toContain('character 22');
  });

  it('takes __proto__ and constructor as ordinary names', () => {
    const value = valueOf('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}') as object;
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor']);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  it('reads what JSON.stringify writes, and refuses exactly what JSON.parse refuses', () => {
    seeded(
      fc.property(fc.jsonValue({ maxDepth: 5, noUnicodeString: false }), (value) => {
        const text = JSON.stringify(value);
        const parsed = parseStrictJson(text);
        if (!parsed.fault) expect(parsed.value).toEqual(JSON.parse(text));
        // The only faults that a value of the language can have.
        else expect(['number_out_of_range', 'lone_surrogate']).toContain(parsed.fault.code);
      }),
    );
    seeded(
      fc.property(fc.stringMatching(/^[[\]{}",:\\u0a1e+.-]{0,14}$/), (text) => {
        const refusedByParser = throws(() => JSON.parse(text));
        expect(parseStrictJson(text).fault?.code === 'malformed_json').toBe(refusedByParser);
      }),
    );
  });

  describe('hostile texts of 256 KiB', () => {
    const size = 256 * 1024;
    const repeat = (part: string) => part.repeat(Math.floor(size / part.length));
    const names = (name: (n: number) => string) => `{${Array.from({ length: 15_000 }, (_, n) => `"${name(n)}":0`).join(',')}}`;
    it.each(
      Object.entries({
        'open arrays': repeat('['),
        'open objects': repeat('{"a":'),
        quotes: repeat('"'),
        'open escape': repeat('"\\'),
        commas: repeat(','),
        'closed arrays': repeat('[]'),
        'one number': repeat('1'),
        numbers: `[${repeat('1e9,')}1]`,
        'escaped strings': `[${repeat('"\\u0061",')}1]`,
        'one escaped string': `"${repeat('\\ud83d\\ude00')}"`,
        'many names': names((n) => `name-${n}`),
        'names whose hashes collide': names((n) => String(n * 65_536)),
        'escaped names': names((n) => `\\u0061${n}`),
      }),
    )('%s take no time worth speaking of', (_, text) => {
      // Time of this process, not of the clock on the wall, and the best of five: the machine is shared.
      const times = [1, 2, 3, 4, 5].map(() => {
        const start = process.cpuUsage();
        parseStrictJson(text);
        const { user, system } = process.cpuUsage(start);
        return (user + system) / 1000;
      });
      // At most 17 ms on a quiet machine; anything quadratic takes seconds.
      expect(Math.min(...times)).toBeLessThan(100);
    });
  });
});

function throws(action: () => unknown): boolean {
  try {
    action();
    return false;
  } catch {
    return true;
  }
}
