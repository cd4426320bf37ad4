import fc, { type Arbitrary } from 'fast-check';

/** JSON text that no serialiser would write. */
class Raw {
  constructor(readonly text: string) {}
}

const raw = (text: string) => new Raw(text);
const nested = (depth: number) => raw('['.repeat(depth) + ']'.repeat(depth));

/** Names that a program may take for its own, or a person for another. */
export const NAMES: readonly string[] = [
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', 'then', 'toJSON', '$ref', '$id'],
  // Cyrillic, right-to-left override, zero width, NUL, full width.
  ...['аmount_minor', '\u202eeman', 'amount\u200b_minor', 'a\u0000b', 'ａction_type', '', ' ', 'a/b', 'a~b', '%00', 'x'.repeat(5_000)],
  ...['tenant', 'operation_id', 'status', 'run_id', 'r_u_n_i_d', 'client_key', 'identity', 'payload', 'action_type'],
];

const VALUES: readonly unknown[] = [
  ...[null, true, false, '', ' ', 0, -1, 1.5, [], {}, [[]], [null], { a: {} }, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER],
  ...[
    '-0',
    '-0.0',
    '1e400',
    '-1e400',
    '1e-400',
    '9007199254740993',
    '9007199254740992',
    '1.0',
    '1e0',
    '123456789012345678901234567890',
  ].map(raw),
  // Not JSON at all.
  ...[
    '00',
    '+1',
    '.5',
    '1.',
    'NaN',
    'Infinity',
    'undefined',
    "'a'",
    '"a\nb"',
    '"\\x41"',
    '"\\u12"',
    '/**/1',
    '1,',
    '[1,]',
    '{"a":1,}',
    '{a:1}',
  ].map(raw),
  ...['"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '{"a":1,"a":2}', '{"a":1,"\\u0061":2}'].map(raw),
  ...['{"__proto__":{"polluted":1}}', '{"constructor":{"prototype":{"polluted":1}}}', '{"toString":1}', '{"then":1}', '{"length":1e9}'].map(
    raw,
  ),
  ...[
    '\u0000',
    '\u202egnp.exe',
    'раypal',
    '\ufeff',
    '\ufe0f',
    '\ufe0f'.repeat(1_200),
    '\u{1f600}'.repeat(200),
    '\u{1f600}'.repeat(201),
    '\u0301'.repeat(300),
  ],
  ...[
    'a\r\nset-cookie: x=1',
    '<script>',
    '${jndi:ldap://x}',
    "'; drop table onefold.events; --",
    '../../etc/passwd',
    '%s%n',
    'op_',
    '*',
    '\\S',
  ],
  ...['x'.repeat(200), 'x'.repeat(201), 'x'.repeat(1_000), 'x'.repeat(1_001), 'x'.repeat(20_000)],
  ...[nested(31), nested(40), nested(5_000), raw('{"a":'.repeat(60) + '1' + '}'.repeat(60)), Array(2_000).fill(0), Array(101).fill({})],
  ...[NAMES.slice(0, 4), Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`m${n}`, n])), raw(manyMembers(500))],
];

function manyMembers(count: number): string {
  return `{${Array.from({ length: count }, (_, n) => `"${n.toString(36)}":0`).join(',')}}`;
}

/** Reads values back into text, `Raw` as it is. */
export function toText(value: unknown): string {
  if (value instanceof Raw) return value.text;
  if (Array.isArray(value)) return `[${value.map(toText).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${toText(member)}`)
    .join(',')}}`;
}

type Path = readonly (string | number)[];

function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([name, member]) => pathsOf(member, [...at, name]))];
}

/** The value with what is at the path changed; `undefined` from `change` takes it out. */
function changed(value: unknown, [first, ...rest]: Path, change: (at: unknown) => unknown): unknown {
  if (first === undefined) return change(value);
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) };
  const members = copy as Record<string | number, unknown>;
  const next = changed(members[first], rest, change);
  if (next === undefined && Array.isArray(copy)) copy.splice(Number(first), 1);
  else if (next === undefined) delete members[first];
  else members[first] = next;
  return copy;
}

function withMember(at: unknown, name: string, member: unknown): unknown {
  if (Array.isArray(at)) return [...(at as unknown[]), member];
  if (typeof at !== 'object' || at === null) return member;
  const inner = toText(at).slice(1, -1);
  // As text, since assigning `__proto__` would make no member.
  return raw(`{${inner}${inner === '' ? '' : ','}${JSON.stringify(name)}:${toText(member)}}`);
}

/** Every change of what a value is, each once: in every place every nasty value, and every name. */
export function everyMutation(value: unknown): Buffer[] {
  const changes = pathsOf(value).flatMap((at) => [
    ...VALUES.map((put) => changed(value, at, () => put)),
    ...NAMES.map((name) => changed(value, at, (was) => withMember(was, name, 1))),
    ...(at.length === 0 ? [] : [changed(value, at, () => undefined)]),
  ]);
  return changes.map((each) => Buffer.from(toText(each)));
}

/** One change of what a value is. */
function mutateValue(value: unknown): Arbitrary<string> {
  const paths = pathsOf(value);
  const path = fc.nat(paths.length - 1).map((index) => paths[index]!);
  const nasty = fc.nat(VALUES.length - 1).map((index) => VALUES[index]);
  const replaced = fc.tuple(path, nasty).map(([at, put]) => changed(value, at, () => put));
  const removed = path.map((at) => (at.length === 0 ? {} : changed(value, at, () => undefined)));
  const added = fc
    .tuple(path, fc.constantFrom(...NAMES), nasty)
    .map(([at, name, put]) => changed(value, at, (was) => withMember(was, name, put)));
  const doubled = path.map((at) =>
    changed(value, at, (was) => (Array.isArray(was) ? [...(was as unknown[]), ...(was as unknown[])] : [was])),
  );
  return fc.oneof({ arbitrary: replaced, weight: 4 }, { arbitrary: added, weight: 3 }, removed, doubled).map(toText);
}

/** One change of how it is written. */
function mutateText(text: string): Arbitrary<Buffer> {
  const bytes = Buffer.from(text);
  const place = fc.nat(bytes.length);
  const cut = place.map((at) => bytes.subarray(0, at));
  const flipped = fc.tuple(place, fc.integer({ min: 0, max: 255 })).map(([at, byte]) => {
    const copy = Buffer.from(bytes);
    copy[Math.min(at, copy.length - 1)] = byte;
    return copy;
  });
  const inserted = fc
    .tuple(place, fc.constantFrom([0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xef, 0xbb, 0xbf], [0xf5, 0x80, 0x80, 0x80], [0]))
    .map(([at, put]) => Buffer.concat([bytes.subarray(0, at), Buffer.from(put), bytes.subarray(at)]));
  const around = fc
    .constantFrom('\ufeff%', '%%', '[%]', '%//', '\u00a0%', '%\u0000', '\n%\t')
    .map((way) => Buffer.from(way.replaceAll('%', () => text)));
  return fc.oneof(cut, flipped, inserted, around);
}

/** Bodies that were right before something was changed in them. */
export function mutated(values: Arbitrary<unknown>): Arbitrary<Buffer> {
  return values.chain((value) =>
    fc.oneof(
      { arbitrary: mutateValue(value).map((text) => Buffer.from(text)), weight: 4 },
      {
        arbitrary: mutateValue(value).chain((text) => (text.length > 10_000 ? fc.constant(Buffer.from(text)) : mutateText(text))),
        weight: 1,
      },
      { arbitrary: mutateText(JSON.stringify(value)), weight: 1 },
    ),
  );
}
