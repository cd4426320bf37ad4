import { posix } from 'node:path';
import ts from 'typescript';

/** A source file: its path from the root of the repository, with `/`, and its text. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Every module a source names: `import`, `export from`, `import type`, `import()`, `import = require()`, `require()`, `typeof import()`. */
export function importsOf({ path, text }: SourceFile): string[] {
  const names: string[] = [];
  const visit = (node: ts.Node): void => {
    const name = moduleNamedBy(node);
    // A name put together at run time can't be checked, and so is an offence of its own.
    if (name) names.push(ts.isStringLiteralLike(name) ? name.text : `<${name.getText()}>`);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true));
  return names;
}

function moduleNamedBy(node: ts.Node): ts.Node | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isExternalModuleReference(node)) return node.expression;
  if (ts.isImportTypeNode(node)) return ts.isLiteralTypeNode(node.argument) ? node.argument.literal : node.argument;
  if (!ts.isCallExpression(node)) return undefined;
  const callee = node.expression;
  const isImport = callee.kind === ts.SyntaxKind.ImportKeyword;
  // `require(x)`, `require.resolve(x)`, `createRequire(here)(x)`, but not `createRequire(here)`, which names where it looks from.
  const isRequire = /^(require(\.\w+)?|createRequire\(.*\))$/s.test(callee.getText());
  return isImport || isRequire ? node.arguments[0] : undefined;
}

/** The part of the repository that a path belongs to: `libs/domain`, `libs/adapters`, `apps/dispatcher`, `bench` ...; null outside of it. */
function partOf(path: string): string | null {
  const [top, name] = path.split('/');
  return top === 'apps' || top === 'libs' ? `${top}/${name}` : top === '..' || top === undefined ? null : top;
}

/** Where an import leads: a part of the repository, or `package` for Node's own modules and those that are installed. */
function targetOf(from: string, name: string): string | null {
  if (name.startsWith('.')) return partOf(posix.join(posix.dirname(from), name));
  if (name === '#domain') return 'libs/domain';
  if (name.startsWith('#adapters/')) return 'libs/adapters';
  // Through the path, so that `#apps/dispatcher/../other` is seen for what it is.
  if (name.startsWith('#apps/')) return partOf(posix.normalize(`apps/${name.slice('#apps/'.length)}`));
  return name.startsWith('#') || name.startsWith('/') || name.startsWith('file:') || name.startsWith('<') ? null : 'package';
}

/**
 * The way imports go (ARCHITECTURE.md): apps -> libs/adapters -> libs/domain. Apps never import each other: what they share is a library.
 * `standalone` composes the other apps into one process; `stack` runs them as processes, `bench` measures them, `proof` breaks them.
 */
function isAllowed(from: string, target: string | null): boolean {
  if (target === null) return false;
  if (target === from) return true;
  if (from === 'libs/domain') return false;
  if (target === 'package' || target === 'libs/domain') return true;
  if (from === 'libs/adapters') return false;
  if (target === 'libs/adapters') return true;
  if (target === 'stack') return from === 'bench' || from === 'proof';
  return target.startsWith('apps/') && ['apps/standalone', 'bench', 'stack', 'proof'].includes(from);
}

/** The imports of a source that go against the arrow, as sentences. */
export function importFaults(source: SourceFile): string[] {
  const from = partOf(source.path);
  return importsOf(source)
    .filter((name) => from === null || !isAllowed(from, targetOf(source.path, name)))
    .map((name) => `${source.path} imports ${name}`);
}
