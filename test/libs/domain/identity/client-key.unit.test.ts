import { describe, expect, it } from 'vitest';
import { checkClientKey } from '#domain';

describe('Idempotency-Key header (public case 10)', () => {
  it.each([
    ['k-1', 'k-1'],
    ['"k-1"', 'k-1'],
    ['K-1', 'K-1'],
    ['  k-1\t', 'k-1'],
    ['"a\\"b\\\\c"', 'a"b\\c'],
    ['a,b', 'a,b'],
    ['"a, b"', 'a, b'],
    ['a"b', 'a"b'],
    ['100%', '100%'],
    ['a%20b', 'a%20b'],
    ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    ['x'.repeat(255), 'x'.repeat(255)],
    [`"${'\\"'.repeat(255)}"`, '"'.repeat(255)],
  ])('reads %j as the key %j', (raw, key) => {
    expect(checkClientKey(raw)).toEqual({ key });
    expect(checkClientKey([raw])).toEqual({ key });
  });

  it.each([
    ['', 'empty'],
    ['   ', 'blank'],
    ['""', 'empty in quotes'],
    ['"  "', 'blank in quotes'],
    ['x'.repeat(256), '256 characters'],
    [`"${'x'.repeat(256)}"`, '256 characters in quotes'],
    ['"k-1', 'without a closing quote'],
    ['"k-1"x', 'with something after the quotes'],
    ['"k-1", "k-2"', 'two strings'],
    ['"a\\n"', 'an escape that there is not'],
    ['"a\\"', 'an escaped closing quote'],
    ['"', 'one quote'],
    ['k\r\nset-cookie: x', 'a line break'],
    ['k\u0000', 'a control character'],
    ['k\u007f', 'a delete character'],
    ['k-1..%0d%0aset-cookie: a=b', 'a line break in percent signs'],
    ['k%0A', 'a line feed in percent signs, in capital letters'],
    ['k%7f', 'a delete character in percent signs'],
    ['ключ', 'no ASCII'],
    ['k\u00a0', 'a space that is no ASCII'],
    [' '.repeat(100_000), 'a long line'],
  ])('refuses %j: %s', (raw, _) => {
    expect(checkClientKey(raw).fault?.code).toBe('idempotency_key_invalid');
  });

  it('refuses no line at all like an empty one', () => {
    expect(checkClientKey([]).fault?.code).toBe('idempotency_key_invalid');
  });

  it('refuses two lines, also equal ones', () => {
    expect(checkClientKey(['k-1', 'k-1']).fault?.code).toBe('idempotency_key_repeated');
  });

  it('never repeats the key', () => {
    expect(JSON.stringify(checkClientKey('"secret-key'))).not.toContain('secret');
  });
});
