/** What differs between installations, read from the environment once, with every default filled in. */
export interface Configuration {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly catalogueFile: string;
  readonly dataDir: string;
  /** Connection string of an outside PostgreSQL; null: the embedded one. */
  readonly databaseUrl: string | null;
  /** Port of the embedded PostgreSQL; null: a free one. */
  readonly databasePort: number | null;
  readonly eventStore: EventStoreKind;
  /** Connection string of an EventStoreDB or KurrentDB server; set where `eventStore` is `eventstoredb`. */
  readonly eventStoreUrl: string | null;
  readonly feed: FeedKind;
  /** Set where `feed` is `kafka`, and for the relay. */
  readonly kafka: KafkaSettings | null;
  /** Start although the database may lose acknowledged commits. */
  readonly allowWeakDurability: boolean;
  /** Empty where none are set. */
  readonly apiKeys: readonly ApiKey[];
  /** First is current; null where none are set. */
  readonly identitySecrets: readonly VersionedKey[] | null;
  /** First is current, 32 bytes each; null where none are set. */
  readonly masterKeys: readonly VersionedKey[] | null;
  readonly logLevel: LogLevel;
  /** Requests per second and tenant; null: no limit. */
  readonly rateLimitPerSecond: number | null;
  readonly shutdownTimeoutMs: number;
  readonly lab: LabAddress;
}

export const EVENT_STORES = ['postgres', 'eventstoredb'] as const;
export type EventStoreKind = (typeof EVENT_STORES)[number];

export const FEEDS = ['direct', 'kafka'] as const;
export type FeedKind = (typeof FEEDS)[number];

export interface KafkaSettings {
  /** `host:port`, at least one. */
  readonly brokers: readonly string[];
  /** Of a topic that does not exist yet. */
  readonly partitions: number;
  readonly replicationFactor: number;
  /** After this long without a sign of life a consumer's partitions go to others. */
  readonly sessionTimeoutMs: number;
}

/** Where the provider lab is. */
export interface LabAddress {
  readonly port: number;
  readonly smtpPort: number;
  /** An outside lab in place of the built-in one, without a slash at its end; null: the built-in one. */
  readonly url: string | null;
  /** `memory` or a file; null: the lab's own choice. */
  readonly ledger: string | null;
}

export const ROLES = ['agent', 'auditor', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface ApiKey {
  readonly key: string;
  readonly tenant: string;
  readonly role: Role;
}

export interface VersionedKey {
  /** For example `v2`. */
  readonly version: string;
  readonly bytes: Uint8Array;
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
