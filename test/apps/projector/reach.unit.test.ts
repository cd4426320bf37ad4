import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '#adapters/package-root.js';

/** Every source file that a program is made of, by following its imports, types included. */
function reachOf(entry: string): Set<string> {
  const reached = new Set<string>();
  const waiting = [join(packageRoot, entry)];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    const imports = [...readFileSync(file, 'utf8').matchAll(/(?:from|import) '([^']+)'/g)];
    for (const [, name] of imports) {
      const path = sourceOf(dirname(file), name!);
      if (path !== null) waiting.push(path);
    }
  }
  return reached;
}

function sourceOf(folder: string, name: string): string | null {
  const toSource = (path: string) => path.replace(/\.js$/, '.ts');
  if (name.startsWith('.')) return toSource(join(folder, name));
  if (name === '#domain') return join(packageRoot, 'libs/domain/src/index.ts');
  if (name.startsWith('#adapters/')) return toSource(join(packageRoot, 'libs/adapters/src', name.slice('#adapters/'.length)));
  if (name.startsWith('#apps/')) return toSource(join(packageRoot, 'apps', name.slice('#apps/'.length)));
  return null;
}

describe('what a projector can reach (I16)', () => {
  // Types too, though they do nothing at run time: the module names the engine's type, and that one has no provider in it either.
  const files = [...reachOf('apps/projector/src/main.ts')].map((file) => file.slice(packageRoot.length + 1));

  it('is found by following the imports', () => {
    expect(files).toContain('libs/adapters/src/view/rebuild-operation-view.ts');
    expect(files).toContain('libs/adapters/src/event-store/postgres/postgres-event-log.ts');
    expect(files.every((file) => existsSync(join(packageRoot, file)))).toBe(true);
  });

  it('has no provider in it, and no other app: replaying and rebuilding call nobody', () => {
    expect(files.filter((file) => file.startsWith('libs/adapters/src/providers/'))).toEqual([]);
    expect(files.filter((file) => file.startsWith('apps/') && !file.startsWith('apps/projector/'))).toEqual([]);
    // The libraries that calls to providers are made with.
    const callers = files.filter((file) => /from '(?:undici|nodemailer)/.test(readFileSync(join(packageRoot, file), 'utf8')));
    expect(callers).toEqual([]);
  });
});
