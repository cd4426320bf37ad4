import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const root = fileURLToPath(new URL('.', import.meta.url));

/** Package imports point at the build; tests run on the sources, so the same names are mapped back. */
const alias = [
  { find: /^#domain$/, replacement: `${root}libs/domain/src/index.ts` },
  { find: /^#adapters\/(.*)\.js$/, replacement: `${root}libs/adapters/src/$1.ts` },
  { find: /^#apps\/(.*)\.js$/, replacement: `${root}apps/$1.ts` },
];

/** The suffix says what a test needs: nothing, a PostgreSQL server, or whole processes built from `dist`. */
const project = (name: string, extra: object = {}) => ({
  resolve: { alias },
  test: { name, include: [`test/**/*.${name}.test.ts`], ...extra },
});

export default defineConfig({
  test: {
    // Two cores: more files at once would only make each of them slower.
    maxWorkers: 2,
    projects: [
      project('unit'),
      project('int', { globalSetup: ['test/support/postgres.global-setup.ts'], testTimeout: 30_000, hookTimeout: 60_000 }),
      project('e2e', { testTimeout: 120_000, hookTimeout: 120_000 }),
    ],
  },
});
