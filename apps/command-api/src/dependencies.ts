import type { AttemptLane, Catalogue, DatabaseClock, DataKeys, EventLog, Hashing, IdentitySecrets, OperationView, Sealer } from '#domain';
import type { Logger } from '#adapters/observability/logger.js';
import type { Metrics } from '#adapters/observability/metrics.js';
import type { ParkedRecords } from '#adapters/postgres/parked-records.js';
import type { ReadinessCheck } from '#adapters/observability/readiness.js';
import type { ApiKey } from './http/api-keys.js';

/** All that the command API needs from outside; nothing in it is closed by the app, since it did not open it. */
export interface CommandApiDependencies {
  readonly log: EventLog;
  readonly clock: DatabaseClock;
  readonly hashing: Hashing;
  readonly sealer: Sealer;
  readonly dataKeys: DataKeys;
  readonly catalogue: Catalogue;
  /** The current secret first. */
  readonly identitySecrets: IdentitySecrets;
  readonly apiKeys: readonly ApiKey[];
  /** Keys the hashes that API keys are kept as. */
  readonly apiKeyPepper: string;
  readonly view: OperationView;
  /** Records about operations that a consumer could not take; null where no broker carries events. */
  readonly parked: Pick<ParkedRecords, 'forOperation'> | null;
  /** A dispatcher in the same process, to which first attempts are handed; null where there is none. */
  readonly lane: AttemptLane | null;
  readonly limits: {
    /** Calls a second and tenant; 0 turns the limit off. */
    readonly rateLimitPerSecond: number;
  };
  readonly readiness: readonly ReadinessCheck[];
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Unique, for example a UUID. */
  readonly newId: () => string;
}

/** Injection token of the dependencies. */
export const DEPENDENCIES = Symbol('CommandApiDependencies');
