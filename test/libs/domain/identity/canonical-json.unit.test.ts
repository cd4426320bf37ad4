import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, canonicalJsonWithout, parseStrictJson } from '#domain';
import { seeded } from '../support/seeded.js';

const canonicalText = (text: string) => canonicalJson(JSON.parse(text));

/** RFC 8785 appendix B: IEEE 754 bits and their only spelling. */
const NUMBERS = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
] as const;

describe('canonical JSON (RFC 8785)', () => {
  it.each(NUMBERS)('writes the double %s as %s (appendix B)', (bits, text) => {
    expect(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text);
  });

  it.each([NaN, Infinity, -Infinity, undefined, 1n, () => 1, Symbol('s'), '\ud800', { a: undefined }, ['\udead']])(
    'refuses %s, which is not JSON',
    (value) => {
      expect(() => canonicalJson(value)).toThrow(TypeError);
    },
  );

  it('refuses a nesting that is too deep instead of overflowing', () => {
    let value: unknown = 1;
    for (let level = 0; level < 100_000; level++) value = [value];
    expect(() => canonicalJson(value)).toThrow(TypeError);
  });

  it('sorts names by UTF-16 code units (section 3.2.3)', () => {
    const text = String.raw`{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }`;
    const inOrder = ['Carriage Return', 'One', 'Control', 'Latin Small Letter O With Diaeresis'];
    inOrder.push('Euro Sign', 'Emoji: Grinning Face', 'Hebrew Letter Dalet With Dagesh');
    expect([...canonicalText(text).matchAll(/:"([^"]+)"/g)].map((match) => match[1])).toEqual(inOrder);
  });

  it('writes the example of sections 3.2.2 and 3.2.4', () => {
    const text = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalText(text)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it.each([
    ['{"qty":1}', '{"qty":1.0}', true],
    ['{"qty":1}', '{"qty":1e0}', true],
    ['{"qty":0}', '{"qty":-0}', true],
    ['{"a":{"x":1,"y":2},"to":["p","q"]}', '{"to":["p","q"],"a":{"y":2,"x":1}}', true],
    ['{"to":["p","q"]}', '{"to":["q","p"]}', false],
    ['{"memo":null}', '{}', false],
    ['{"amount":"40.0"}', '{"amount":"40.00"}', false],
    ['{"amount":"40"}', '{"amount":40}', false],
    ['{"subject":"caf\\u00e9"}', '{"subject":"cafe\\u0301"}', false],
  ])('public cases 4, 5, 7, 9: %s and %s are one payload: %s', (one, other, same) => {
    expect(canonicalText(one) === canonicalText(other)).toBe(same);
  });

  it('keeps own members called __proto__', () => {
    expect(canonicalText('{"b":1,"__proto__":{"a":2}}')).toBe('{"__proto__":{"a":2},"b":1}');
  });

  it('does not depend on the order of members, at any level', () => {
    seeded(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        expect(canonicalJson(reversed(value))).toBe(canonicalJson(value));
      }),
    );
  });

  it('depends on the order of elements', () => {
    seeded(
      fc.property(fc.array(fc.integer(), { minLength: 2, maxLength: 6 }), (array) => {
        const turned = array.toReversed();
        const samePayload = array.every((element, index) => element === turned[index]);
        expect(canonicalJson(turned) === canonicalJson(array)).toBe(samePayload);
      }),
    );
  });

  it('reads back as the same value, whose text is the same again', () => {
    seeded(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = canonicalJson(value);
        // Through JSON.stringify, which has no -0 either.
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalText(text)).toBe(text);
      }),
    );
  });

  it('writes what the strict reader takes', () => {
    seeded(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.integer()), (value) => {
        expect(parseStrictJson(canonicalJson(value)).fault).toBeUndefined();
      }),
    );
  });
});

describe('canonical JSON without the presentational parts', () => {
  const payload = {
    order: '4417',
    reason: 'damaged',
    items: [
      { sku: 'a', note: 'x' },
      { sku: 'b', note: 'y' },
    ],
    'a/b': { '~': 1, k: 2 },
  };

  it.each([
    [[], canonicalJson(payload)],
    [['/reason'], canonicalJson({ order: payload.order, items: payload.items, 'a/b': payload['a/b'] })],
    [['/nothing', '/items/7/note', '/reason/deeper', '/items/note'], canonicalJson(payload)],
    [['/items/0/note'], canonicalJson({ ...payload, items: [{ sku: 'a' }, { sku: 'b', note: 'y' }] })],
    [['/items/0'], canonicalJson({ ...payload, items: [{ sku: 'b', note: 'y' }] })],
    [['/a~1b/~0'], canonicalJson({ ...payload, 'a/b': { k: 2 } })],
    [['/items/0/note', '/items', '/items/1/note'], canonicalJson({ order: '4417', reason: 'damaged', 'a/b': { '~': 1, k: 2 } })],
    [['/items/00'], canonicalJson(payload)],
  ] as [string[], string][])('leaves out %j', (pointers, text) => {
    expect(canonicalJsonWithout(payload, pointers)).toBe(text);
  });

  it('does not change the payload', () => {
    const before = structuredClone(payload);
    canonicalJsonWithout(payload, ['/reason', '/items/0/note']);
    expect(payload).toEqual(before);
  });

  it.each(['', 'reason', '/a~2', '#/reason'])('refuses the pointer %j, which names no member', (pointer) => {
    expect(() => canonicalJsonWithout(payload, [pointer])).toThrow(TypeError);
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  const turned = Object.entries(value)
    .toReversed()
    .map(([name, member]) => [name, reversed(member)] as const);
  return Object.fromEntries(turned);
}
