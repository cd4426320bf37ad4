import { join } from 'node:path';
import { packageRoot } from '#adapters/package-root.js';
import { loadSecrets } from '#adapters/runtime/secrets.js';
import { developmentKey } from '#apps/standalone/src/development-key.js';

export const SERVICE_NAMES = ['command-api', 'relay', 'dispatcher', 'projector'] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];
export type Environment = Readonly<Record<string, string>>;

/** Names of ours: what a person has set for another run must not reach the services by the way. */
const OWN_NAMES = /^(ONEFOLD_|LAB_|KAFKA_|EVENT|DATABASE_|SMTP_URL|FEED$|PORT$|HOST$)/;

/** What this process was given, without anything that Onefold reads. */
export function plainEnvironment(): Environment {
  const entries = Object.entries(process.env).filter(([name, value]) => value !== undefined && !OWN_NAMES.test(name));
  return Object.fromEntries(entries) as Environment;
}

export interface Addresses {
  readonly database: string;
  readonly kafka: string;
  readonly lab: string;
  readonly smtp: string;
}

/** What all services of an installation are told alike. */
export function sharedEnvironment(addresses: Addresses, secrets: Environment, brokers: number): Environment {
  return {
    ...plainEnvironment(),
    ...secrets,
    EVENT_STORE: 'postgres',
    DATABASE_URL: addresses.database,
    FEED: 'kafka',
    KAFKA_BROKERS: addresses.kafka,
    ONEFOLD_KAFKA_REPLICATION_FACTOR: String(brokers),
    ONEFOLD_CATALOGUE: join(packageRoot, 'onefold.yaml'),
    LAB_URL: addresses.lab,
    SMTP_URL: addresses.smtp,
    HOST: '127.0.0.1',
    ONEFOLD_LOG_LEVEL: 'warn',
  };
}

/** The secrets that all services of one database share, and the key of a caller: made once in the data folder, as `npm start` does. */
export function makeSecrets(dataDir: string): { readonly key: string; readonly secrets: readonly string[]; readonly env: Environment } {
  const { identitySecrets, masterKeys } = loadSecrets(dataDir, { identitySecrets: null, masterKeys: null });
  const { key, tenant, role } = developmentKey(dataDir);
  const [identity] = identitySecrets;
  const [master] = masterKeys;
  const masterKey = Buffer.from(master.key).toString('hex');
  return {
    key,
    secrets: [String(identity.secret), masterKey],
    env: {
      ONEFOLD_API_KEYS: `${key}:${tenant}:${role}`,
      ONEFOLD_IDENTITY_SECRETS: `${identity.version}:${identity.secret}`,
      ONEFOLD_MASTER_KEYS: `${master.version}:${masterKey}`,
    },
  };
}
