import type pg from 'pg';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { textArray } from '#adapters/event-store/postgres/text-array.js';
import { openSession } from '../../../../support/event-log-postgres.js';
import { createTestDatabase, type TestDatabase } from '../../../../support/test-database.js';

let database: TestDatabase;
let session: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  session = await openSession(database.url);
});
afterAll(async () => {
  await session.end();
  await database.drop();
});

/** What the server makes of it, in a form that no array syntax can blur: one hexadecimal text a member, in order. */
async function membersAtServer(values: readonly string[]): Promise<{ members: string[]; dimensions: string | null }> {
  const text = `select coalesce(jsonb_agg(encode(convert_to(member, 'UTF8'), 'hex') order by n), '[]') as members,
                       array_dims($1::text[]) as dimensions
                from unnest($1::text[]) with ordinality as m (member, n)`;
  const { rows } = await session.query<{ members: string[]; dimensions: string | null }>({
    name: 'members',
    text,
    values: [textArray(values)],
  });
  return rows[0]!;
}

const hex = (text: string) => Buffer.from(text, 'utf8').toString('hex');

it('the server reads exactly the texts that were given', async () => {
  // PostgreSQL's text holds no NUL; everything else must arrive, also what array or JSON syntax would mean something by.
  const member = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }).map((text) => text.replaceAll('\0', '')),
    fc.constantFrom('', 'NULL', 'null', '{}', '{a,b}', '"', '\\', '\\"', ',', ' ', '\n', 'é', '日本語', '\u{1F600}', '\uFEFF'),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(member, { maxLength: 30 }), async (values) => {
      const { members, dimensions } = await membersAtServer(values);
      expect(members).toEqual(values.map(hex));
      expect(dimensions).toBe(values.length === 0 ? null : `[1:${values.length}]`);
    }),
    { numRuns: 150 },
  );
});

it('also large texts and many of them', async () => {
  const values = [...Array.from({ length: 2_000 }, (_, index) => `member ${index}`), 'é'.repeat(300_000)];
  expect((await membersAtServer(values)).members).toEqual(values.map(hex));
});

it('a lone surrogate becomes the replacement character, as everywhere in Node', async () => {
  expect((await membersAtServer(['a\ud800b'])).members).toEqual([hex('a\uFFFDb')]);
});

it('a NUL is refused by the server and not cut off silently', async () => {
  await expect(membersAtServer(['a\0b'])).rejects.toMatchObject({ code: '22021' });
});
