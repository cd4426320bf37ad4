import type { Configuration } from '#adapters/configuration/configuration.js';
import type { Logger } from '#adapters/observability/logger.js';
import { rebuildOperationView } from '#adapters/view/rebuild-operation-view.js';
import { digestOfView, type ViewDigest } from '#adapters/view/view-digest.js';
import { openDatabaseOrEmbedded } from './open-database.js';

/** What a rebuild prints as its last line. */
export interface RebuildReport {
  readonly rebuilt: true;
  readonly events: number;
  /** Position up to which the view is now the fold of the log. */
  readonly position: number;
  readonly seconds: number;
}

export interface CommandOptions {
  readonly configuration: Configuration;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** One sentence at a time, for a person who waits. */
  readonly tell: (text: string) => void;
}

const TELL_EVERY_MS = 1_000;

/** Builds the status view anew; the live one is read and written meanwhile. */
export async function rebuild({ configuration, logger, signal, tell }: CommandOptions): Promise<RebuildReport> {
  const startedAt = performance.now();
  const database = await openDatabaseOrEmbedded(configuration, logger);
  try {
    let toldAt = -Infinity;
    const { events, position } = await rebuildOperationView({
      pool: database.derivedPool,
      log: database.log,
      signal,
      onProgress: (reached, head) => {
        const now = performance.now();
        if (now - toldAt < TELL_EVERY_MS) return;
        toldAt = now;
        tell(`folded ${reached} of ${head < reached ? reached : head} events`);
      },
    });
    return { rebuilt: true, events, position: Number(position), seconds: Math.round(performance.now() - startedAt) / 1_000 };
  } finally {
    await database.close();
  }
}

/** Count and digest of the status view, to compare it with an earlier or a rebuilt one at rest. */
export async function digest({ configuration, logger }: CommandOptions): Promise<ViewDigest> {
  const database = await openDatabaseOrEmbedded(configuration, logger);
  try {
    return await digestOfView(database.derivedPool);
  } finally {
    await database.close();
  }
}
