import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  startEmbeddedPostgres,
  stopAbandonedPostgres,
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
} from '#adapters/postgres/embedded/index.js';
import type { BuiltLauncher, OwnerProcess } from './owner-process.js';

/** A data folder for one test, which takes its servers with it however the test ends. */
export interface Scratch {
  readonly dataDir: string;
  /** Starts a server owned by this process. */
  start(options?: Omit<EmbeddedPostgresOptions, 'dataDir'>): Promise<EmbeddedPostgres>;
  /** Starts a server owned by a process of its own. */
  startOwner(launcher: BuiltLauncher, as?: { uid: number; gid: number }): OwnerProcess;
  /** Ends all servers and owners; the data stays. */
  stopAll(): Promise<void>;
  remove(): Promise<void>;
}

export async function makeScratch(): Promise<Scratch> {
  const dataDir = await mkdtemp(join(tmpdir(), 'onefold-embedded-'));
  const servers: EmbeddedPostgres[] = [];
  const owners: OwnerProcess[] = [];
  const stopAll = async () => {
    for (const server of servers.splice(0)) await server.stop();
    for (const { child, kill } of owners.splice(0)) if (child.exitCode === null && child.signalCode === null) await kill();
    await stopAbandonedPostgres(dataDir);
  };
  return {
    dataDir,
    start: async (options) => {
      const server = await startEmbeddedPostgres({ ...options, dataDir });
      servers.push(server);
      return server;
    },
    startOwner: (launcher, as) => {
      const owner = launcher.start({ dataDir }, as);
      owners.push(owner);
      return owner;
    },
    stopAll,
    remove: async () => {
      await stopAll();
      await rm(dataDir, { recursive: true });
    },
  };
}
