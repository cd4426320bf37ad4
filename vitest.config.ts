import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const root = fileURLToPath(new URL('.', import.meta.url));

/** Package imports point at the build; tests run on the sources, so the same names are mapped back. */
const alias = [
  { find: /^#domain$/, replacement: `${root}libs/domain/src/index.ts` },
  { find: /^#adapters\/(.*)\.js$/, replacement: `${root}libs/adapters/src/$1.ts` },
  { find: /^#apps\/(.*)\.js$/, replacement: `${root}apps/$1.ts` },
];

/** The suffix says what a test needs: nothing, a PostgreSQL server, a Kafka broker as well, or whole processes built from `dist`. */
const project = (name: string, extra: object = {}) => ({
  resolve: { alias },
  test: { name, include: [`test/**/*.${name}.test.ts`], ...extra },
});

export default defineConfig({
  test: {
    // Two cores: more files at once would only make each of them slower.
    maxWorkers: 2,
    projects: [
      // Properties run for seconds where the machine is busy; how long is not what they are about.
      project('unit', { testTimeout: 60_000 }),
      project('int', { globalSetup: ['test/support/postgres.global-setup.ts'], testTimeout: 30_000, hookTimeout: 60_000 }),
      project('kafka', {
        globalSetup: ['test/support/postgres.global-setup.ts', 'test/support/kafka.global-setup.ts'],
        testTimeout: 120_000,
        hookTimeout: 120_000,
        // One broker on the same two cores: two files at once, or whole processes beside them, would mostly wait for each other.
        fileParallelism: false,
        sequence: { groupOrder: 1 },
      }),
      project('e2e', { testTimeout: 120_000, hookTimeout: 120_000, sequence: { groupOrder: 2 } }),
    ],
  },
});
