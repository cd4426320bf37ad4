import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { importFaults, importsOf, type SourceFile } from './import-rules.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

function sourcesUnder(folder: string): SourceFile[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[mc]?[jt]sx?$/.test(entry.name) && !entry.parentPath.includes('node_modules'))
    .map((entry) => {
      const path = posix.normalize(join(entry.parentPath, entry.name).slice(root.length).replaceAll('\\', '/'));
      return { path, text: readFileSync(join(root, path), 'utf8') };
    });
}

const source = (path: string, text: string): SourceFile => ({ path, text });

describe('imports go one way: apps -> libs/adapters -> libs/domain', () => {
  const sources = ['apps', 'libs', 'bench'].flatMap(sourcesUnder);

  it('everywhere', () => {
    expect(sources.flatMap(importFaults)).toEqual([]);
  });

  it('and the sources were found', () => {
    const paths = sources.map(({ path }) => path);
    expect(paths).toContain('libs/domain/src/operation/decide.ts');
    expect(paths.some((path) => path.startsWith('libs/adapters/src/'))).toBe(true);
    expect(paths.some((path) => path.startsWith('apps/'))).toBe(true);
    expect(sources.flatMap(importsOf).length).toBeGreaterThan(50);
  });
});

/** The checker itself, on sources that were never written to disk. */
describe('the check sees', () => {
  const domain = 'libs/domain/src/operation/decide.ts';
  const adapter = 'libs/adapters/src/postgres/pool.ts';
  const app = 'apps/dispatcher/src/main.ts';

  it.each([
    ["import { x } from '#adapters/postgres/pool.js';", '#adapters/postgres/pool.js'],
    ["import '#adapters/x.js';", '#adapters/x.js'],
    ["import type { X } from '#adapters/x.js';", '#adapters/x.js'],
    ["import { type X } from '#adapters/x.js';", '#adapters/x.js'],
    ["export { x } from '#adapters/x.js';", '#adapters/x.js'],
    ["export * from '#adapters/x.js';", '#adapters/x.js'],
    ["export type { X } from '#adapters/x.js';", '#adapters/x.js'],
    ["const x = await import('#adapters/x.js');", '#adapters/x.js'],
    ['const x = await import(`#adapters/x.js`);', '#adapters/x.js'],
    ["const x = require('#adapters/x.js');", '#adapters/x.js'],
    ["import x = require('#adapters/x.js');", '#adapters/x.js'],
    ["const at = require.resolve('#adapters/x.js');", '#adapters/x.js'],
    ["const x = createRequire(import.meta.url)('#adapters/x.js');", '#adapters/x.js'],
    ["let x: import('#adapters/x.js').X;", '#adapters/x.js'],
    ["let x: typeof import('#adapters/x.js');", '#adapters/x.js'],
    ["function f() { if (a) { return () => import('#adapters/x.js'); } }", '#adapters/x.js'],
  ])('the import in %s', (text, name) => {
    expect(importsOf(source(domain, text))).toEqual([name]);
    expect(importFaults(source(domain, text))).toEqual([`${domain} imports ${name}`]);
  });

  it.each([
    [domain, 'node:crypto', 'a module of Node in the core'],
    [domain, 'crypto', 'a module of Node without its prefix'],
    [domain, '@nestjs/common', 'a package in the core'],
    [domain, 'pg', 'a package in the core'],
    [domain, '#apps/dispatcher/src/main.js', 'an app in the core'],
    [domain, '../../../adapters/src/x.js', 'an adapter by its path'],
    [domain, '../../../../apps/dispatcher/src/main.js', 'an app by its path'],
    [domain, '../../../../test/support/x.js', 'a test'],
    [domain, '../../../../../elsewhere/x.js', 'what lies outside the repository'],
    [domain, '#unheard/of.js', 'a name that nobody has declared'],
    [domain, '/etc/x.js', 'an absolute path'],
    [adapter, '#apps/dispatcher/src/main.js', 'an app in an adapter'],
    [adapter, '../../../../apps/dispatcher/src/main.js', 'an app in an adapter by its path'],
    [adapter, '../../../../bench/x.js', 'the benchmark in an adapter'],
    [app, '#apps/projector/src/main.js', 'an app in another app'],
    [app, '../../projector/src/main.js', 'an app in another app by its path'],
    [app, '#apps/dispatcher/../projector/src/main.js', 'an app in another app by a detour'],
    [app, '../../standalone/src/main.js', 'the standalone app in another app'],
    [app, '../../../test/support/x.js', 'a test in an app'],
    [app, '../../../bench/x.js', 'the benchmark in an app'],
    ['bench/x.ts', '../test/support/x.js', 'a test in the benchmark'],
  ])('from %s to %s: %s', (path, name) => {
    expect(importFaults(source(path, `import { x } from '${name}';`))).toEqual([`${path} imports ${name}`]);
  });

  it('a name that is only put together at run time', () => {
    expect(importFaults(source(domain, 'const x = await import(name);'))).toEqual([`${domain} imports <name>`]);
    expect(importFaults(source(app, 'const x = await import(`#apps/${name}/src/main.js`);'))).toHaveLength(1);
  });

  it.each([
    [domain, './events.js'],
    [domain, '../ports/hashing.js'],
    [adapter, '#domain'],
    [adapter, './other.js'],
    [adapter, '../providers/x.js'],
    [adapter, 'pg'],
    [adapter, 'node:crypto'],
    [app, '#domain'],
    [app, '#adapters/postgres/pool.js'],
    [app, './work/claim.js'],
    [app, '#apps/dispatcher/src/work/claim.js'],
    [app, '@nestjs/core'],
    ['apps/standalone/src/main.ts', '#apps/dispatcher/src/main.js'],
    ['apps/standalone/src/main.ts', '../../projector/src/main.js'],
    ['bench/x.ts', '#apps/standalone/src/main.js'],
    ['bench/x.ts', '../apps/provider-lab/src/main.js'],
  ])('no fault from %s to %s', (path, name) => {
    expect(importFaults(source(path, `import { x } from '${name}';`))).toEqual([]);
  });

  it('no import in a comment or a text', () => {
    expect(importsOf(source(domain, "// import 'pg';\nconst text = \"import 'pg'\"; const of = 'require(x)';"))).toEqual([]);
  });
});
