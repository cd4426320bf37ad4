import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageRoot } from '#adapters/package-root.js';
import { createLogDatabase, withPool } from '../../../support/event-log-postgres.js';
import type { TestDatabase } from '../../../support/test-database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createLogDatabase();
});
afterAll(() => database.drop());

async function dump(): Promise<string> {
  const script = join(packageRoot, 'scripts/dump-schema.mjs');
  const env = { ...process.env, DATABASE_URL: database.url };
  return (await promisify(execFile)(process.execPath, [script, '--print'], { env })).stdout;
}

const run = (statement: string) => withPool(database.url, (pool) => pool.query(statement));

it('docs/schema.sql is what the migrations make (if not: npm run db:dump)', async () => {
  expect(await readFile(join(packageRoot, 'docs/schema.sql'), 'utf8')).toBe(await dump());
});

it('the dump shows each kind of change', async () => {
  const before = (await dump()).split('\n');
  await run(`
    alter table onefold.checkpoints add seen integer default 7;
    alter table onefold.data_keys add constraint no_blank check (key_id <> '');
    create index of_type on onefold.events (type);
    comment on table onefold.events is 'it''s new';
    create function onefold.f() returns int language sql as 'select 1'`);
  const added = (await dump()).split('\n').filter((line) => !before.includes(line));
  expect(added).toEqual(
    expect.arrayContaining([
      '  seen integer default 7,',
      `  constraint no_blank CHECK ((key_id <> ''::text))`,
      'CREATE INDEX of_type ON onefold.events USING btree (type);',
      `comment on table onefold.events is 'it''s new';`,
      'CREATE OR REPLACE FUNCTION onefold.f()',
    ]),
  );
});

it('the dump leaves nothing out in silence', async () => {
  await run('create view onefold.v as select 1 as one');
  await expect(dump()).rejects.toThrow(/Teach .* to show: v \(relation of kind v\)/);
});
