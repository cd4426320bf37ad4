/** One environment variable of Onefold. `docs/configuration.md` describes the same ones; a test compares the two. */
export interface VariableDefinition {
  readonly name: string;
  /** Also readable from the file that `NAME_FILE` names, and never shown. */
  readonly isSecret: boolean;
}

const plain = (name: string): VariableDefinition => ({ name, isSecret: false });
const secret = (name: string): VariableDefinition => ({ name, isSecret: true });

export const VARIABLES: readonly VariableDefinition[] = [
  plain('HOST'),
  plain('PORT'),
  secret('DATABASE_URL'),
  secret('EVENTSTORE_URL'),
  plain('EVENT_STORE'),
  plain('FEED'),
  plain('KAFKA_BROKERS'),
  plain('LAB_LEDGER'),
  plain('LAB_PORT'),
  plain('LAB_SMTP_PORT'),
  plain('LAB_URL'),
  plain('ONEFOLD_ALLOW_WEAK_DURABILITY'),
  secret('ONEFOLD_API_KEYS'),
  plain('ONEFOLD_CATALOGUE'),
  plain('ONEFOLD_DATABASE_PORT'),
  plain('ONEFOLD_DATA_DIR'),
  secret('ONEFOLD_IDENTITY_SECRETS'),
  plain('ONEFOLD_KAFKA_PARTITIONS'),
  plain('ONEFOLD_KAFKA_REPLICATION_FACTOR'),
  plain('ONEFOLD_KAFKA_SESSION_TIMEOUT_MS'),
  plain('ONEFOLD_LOG_LEVEL'),
  secret('ONEFOLD_MASTER_KEYS'),
  plain('ONEFOLD_RATE_LIMIT_PER_SECOND'),
  plain('ONEFOLD_SHUTDOWN_TIMEOUT_MS'),
];

/** All names that may be set: a secret's file has one of its own. */
export const KNOWN_NAMES: readonly string[] = VARIABLES.flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name]));
