import type { OperationPolicy } from '../operation/events.js';

/** What the catalogue file says, validated and with every default filled in. */
export interface Catalogue {
  readonly actions: ReadonlyMap<string, ActionDefinition>;
  readonly providers: ReadonlyMap<string, ProviderDefinition>;
}

export interface ActionDefinition {
  readonly actionType: string;
  readonly provider: string;
  readonly risk: 'irreversible' | 'reversible';
  /** Field sets of which an identity must be exactly one; empty: any 1-8 fields. */
  readonly identity: readonly (readonly string[])[];
  /** JSON Schema of the payload, as declared; null: any JSON object. */
  readonly payloadSchema: object | null;
  /** JSON pointers into the payload that the hash leaves out. */
  readonly presentational: readonly string[];
  readonly policy: OperationPolicy;
  /** Violations of the payload schema, empty when it fits. */
  validatePayload(payload: unknown): readonly PayloadViolation[];
}

export interface PayloadViolation {
  /** JSON pointer to the member. */
  readonly pointer: string;
  /** The rule in words; never the value. */
  readonly rule: string;
}

export interface ProviderDefinition {
  readonly name: string;
  readonly kind: 'http' | 'smtp';
  readonly timeoutMs: number;
  readonly limits: { readonly concurrency: number; readonly perSecond: number | null };
  readonly breaker: BreakerSettings | null;
}

/** Opens after `failures` unknown or unreachable answers in a row within `windowMs`, and stays open for as long. */
export interface BreakerSettings {
  readonly failures: number;
  readonly windowMs: number;
  /** What tries the provider first when it half-opens: a look-up, where there is one, or one attempt. */
  readonly halfOpen: 'lookup' | 'attempt';
}
