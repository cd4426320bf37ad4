import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { EmbeddedPostgresError, startEmbeddedPostgres, stopAbandonedPostgres } from '#adapters/postgres/embedded/index.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** A PostgreSQL server whose role may create databases. */
    postgresUrl: string;
  }
}

const PREFIX = 'onefold-test-postgres-';
/** A younger folder may belong to a run that is just starting and has not taken its lock yet. */
const ABANDONED_AFTER_MS = 10 * 60_000;

/** One server for all test files: `TEST_DATABASE_URL`, or an embedded one in a temporary folder that is removed afterwards. */
export default async function startPostgres(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env['TEST_DATABASE_URL'];
  if (given) {
    project.provide('postgresUrl', given);
    return undefined;
  }
  await removeAbandoned();
  const dataDir = await mkdtemp(join(tmpdir(), PREFIX));
  const postgres = await startEmbeddedPostgres({ dataDir });
  project.provide('postgresUrl', postgres.url);
  return async () => {
    await postgres.stop();
    await rm(dataDir, { recursive: true });
  };
}

/** A test run that was killed leaves its server running for good, unless a later run clears it away. */
async function removeAbandoned(): Promise<void> {
  for (const name of (await readdir(tmpdir())).filter((each) => each.startsWith(PREFIX))) {
    const dataDir = join(tmpdir(), name);
    const { mtimeMs } = await stat(dataDir);
    if (Date.now() - mtimeMs < ABANDONED_AFTER_MS) continue;
    try {
      await stopAbandonedPostgres(dataDir);
      await rm(dataDir, { recursive: true, force: true });
    } catch (error) {
      // Another run that is going on, or one of another user.
      const theirs = error instanceof EmbeddedPostgresError && ['data_folder_in_use', 'data_folder_foreign'].includes(error.code);
      if (!theirs) throw error;
    }
  }
}
