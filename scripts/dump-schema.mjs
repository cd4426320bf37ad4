// Writes docs/schema.sql: what the migrations make of an empty database, for reading and for review.
// With --print instead: the schema of the database at DATABASE_URL, to standard output.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { prepare, root } from './prepare.mjs';

const HEADING = `-- The schema as the migrations make it, for reading. Written by \`npm run db:dump\`; a test holds it against a freshly
-- migrated database. What is in force are the numbered files in libs/adapters/src/postgres/migrations.
`;

const TABLES = `select c.oid, c.relname as name, c.reloptions as options, obj_description(c.oid, 'pg_class') as comment
from pg_class c where c.relnamespace = 'onefold'::regnamespace and c.relkind = 'r' order by c.relname collate "C"`;

const COLUMNS = `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required, a.attidentity as identity,
  a.attgenerated as generated, pg_get_expr(d.adbin, d.adrelid) as default, col_description(a.attrelid, a.attnum) as comment,
  case when a.attcollation <> t.typcollation then quote_ident(l.collname) end as collation
from pg_attribute a join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
left join pg_collation l on l.oid = a.attcollation
where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`;

// Not-null constraints (n) stand with their columns.
const CONSTRAINTS = `select conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
where conrelid = $1 and contype <> 'n' order by position(contype::text in 'pufcx'), conname collate "C"`;

const INDEXES = `select pg_get_indexdef(i.indexrelid) as definition, c.relname as name, obj_description(c.oid, 'pg_class') as comment
from pg_index i join pg_class c on c.oid = i.indexrelid
where i.indrelid = $1 and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))
order by c.relname collate "C"`;

const FUNCTIONS = `select pg_get_functiondef(p.oid) as definition, p.oid::regprocedure::text as signature,
  obj_description(p.oid, 'pg_proc') as comment
from pg_proc p where p.pronamespace = 'onefold'::regnamespace order by p.oid::regprocedure::text collate "C"`;

// What none of the above would show: it must be named here rather than be missing there.
const UNSEEN = `select relname::text || ' (relation of kind ' || relkind::text || ')' as what from pg_class
  where relnamespace = 'onefold'::regnamespace and relkind not in ('r', 'i', 't')
union all select tgname::text || ' (trigger)' from pg_trigger t join pg_class c on c.oid = t.tgrelid
  where c.relnamespace = 'onefold'::regnamespace and not t.tgisinternal
union all select typname::text || ' (type)' from pg_type where typnamespace = 'onefold'::regnamespace and typtype in ('d', 'e', 'r', 'm')
union all select relname::text || ' (row security)' from pg_class where relnamespace = 'onefold'::regnamespace and relrowsecurity
order by 1`;

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
const comment = (on, text) => (text === null ? [] : [`comment on ${on} is ${quoted(text)};`]);

function columnText({ name, type, required, identity, generated, default: value, collation }) {
  if (identity !== '' || generated !== '')
    throw new Error(`Column ${name} is an identity or generated: teach scripts/dump-schema.mjs to show it.`);
  return [name, type, collation && `collate ${collation}`, required && 'not null', value !== null && `default ${value}`]
    .filter(Boolean)
    .join(' ');
}

async function tableText(client, { oid, name, options, comment: about }) {
  const rows = async (text) => (await client.query(text, [oid])).rows;
  const [columns, constraints, indexes] = [await rows(COLUMNS), await rows(CONSTRAINTS), await rows(INDEXES)];
  const lines = [...columns.map(columnText), ...constraints.map((each) => `constraint ${each.name} ${each.definition}`)];
  const storage = options === null ? '' : ` with (${options.join(', ')})`;
  return [
    `create table onefold.${name} (\n${lines.map((line) => `  ${line}`).join(',\n')}\n)${storage};`,
    ...indexes.map(({ definition }) => `${definition};`),
    ...comment(`table onefold.${name}`, about),
    ...columns.flatMap((column) => comment(`column onefold.${name}.${column.name}`, column.comment)),
    ...indexes.flatMap((index) => comment(`index onefold.${index.name}`, index.comment)),
  ].join('\n');
}

async function schemaText(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // Definitions come with the names of all schemas written out.
    await client.query("set search_path = ''");
    const unseen = (await client.query(UNSEEN)).rows;
    if (unseen.length > 0) throw new Error(`Teach scripts/dump-schema.mjs to show: ${unseen.map(({ what }) => what).join(', ')}.`);
    const parts = [HEADING];
    for (const table of (await client.query(TABLES)).rows) parts.push(await tableText(client, table));
    for (const { definition, signature, comment: about } of (await client.query(FUNCTIONS)).rows) {
      parts.push([`${definition.trimEnd()};`, ...comment(`function ${signature}`, about)].join('\n'));
    }
    return `${parts.map((part) => part.trimEnd()).join('\n\n')}\n`;
  } finally {
    await client.end();
  }
}

async function migratedSchemaText() {
  prepare();
  const { startEmbeddedPostgres } = await import('#adapters/postgres/embedded/index.js');
  const { openPool } = await import('#adapters/postgres/database.js');
  const { migrate } = await import('#adapters/postgres/migrate.js');
  const dataDir = await mkdtemp(join(tmpdir(), 'onefold-schema-'));
  const server = await startEmbeddedPostgres({ dataDir });
  try {
    const pool = openPool({ url: server.url, poolSize: 1 });
    await migrate(pool);
    await pool.end();
    return await schemaText(server.url);
  } finally {
    await server.stop();
    await rm(dataDir, { recursive: true });
  }
}

if (process.argv.includes('--print')) {
  process.stdout.write(await schemaText(process.env.DATABASE_URL));
} else {
  await writeFile(join(root, 'docs', 'schema.sql'), await migratedSchemaText());
  console.log('docs/schema.sql written');
}
