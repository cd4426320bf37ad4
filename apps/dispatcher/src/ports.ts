import type { Catalogue, CommandPorts, DataKeys, DueWork, ProviderAdapter, Sealer } from '#domain';

/** All that a dispatcher works with; the composing program hands it in. */
export interface DispatcherPorts extends CommandPorts {
  readonly sealer: Sealer;
  readonly dataKeys: DataKeys;
  readonly dueWork: DueWork;
  readonly catalogue: Catalogue;
  readonly providers: ReadonlyMap<string, ProviderAdapter>;
  /** Names this process in claims and logs; it proves nothing. */
  readonly worker: string;
  readonly newId: () => string;
  /** Milliseconds of a counter of this process that no clock setting moves. */
  readonly monotonicMs: () => number;
  /** Resolves after so many milliseconds of that counter; a timer of this process when left out. */
  readonly delay?: (ms: number) => Promise<void>;
  /** In [0, 1). */
  readonly random: () => number;
  readonly report: DispatcherReport;
}

/** What the dispatcher tells of itself: figures and faults, never payloads. */
export interface DispatcherReport {
  attempt(provider: string, outcome: string, durationMs: number): void;
  lookUp(provider: string, verdict: string): void;
  fault(what: string, operationId: string | null, error: Error): void;
}
