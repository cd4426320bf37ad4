import { LOG_LEVELS, type Configuration, type LabAddress } from './configuration.js';
import { didYouMean } from './did-you-mean.js';
import type { Environment } from './environment.js';
import { FaultList } from './faults.js';
import { readEventStore, readFeed } from './read-engine.js';
import { readApiKeys, readVersionedKeys } from './read-keys.js';
import { EnvironmentReader } from './environment-reader.js';
import { KNOWN_NAMES } from './variables.js';

const API_PORT_INITIAL = 3000;
const LAB_PORT_INITIAL = 4010;
const PORT_MAX = 65_535;
/** Longer than the initial time-out of a provider (10 s), so that a call under way can end and be recorded. */
const SHUTDOWN_TIMEOUT_INITIAL_MS = 15_000;
const SHUTDOWN_TIMEOUT_MAX_MS = 600_000;
const RATE_LIMIT_MAX = 1_000_000;
/** As long as the output of HMAC-SHA-256 that it keys (RFC 2104 section 3). */
const IDENTITY_SECRET_BYTES_MIN = 32;
/** The key length of AES-256. */
const MASTER_KEY_BYTES = 32;

/**
 * Reads the environment (`docs/configuration.md` is its reference).
 * @throws ConfigurationFaults with every fault found, by the variable's name; never with a value of a secret
 */
export function readConfiguration(env: Environment): Configuration {
  const faults = new FaultList();
  const reader = new EnvironmentReader(env, faults);
  reportUnknown(env, faults);
  const configuration: Configuration = {
    host: reader.text('HOST') ?? '127.0.0.1',
    port: reader.integer('PORT', { min: 0, max: PORT_MAX }) ?? API_PORT_INITIAL,
    catalogueFile: reader.text('ONEFOLD_CATALOGUE') ?? 'onefold.yaml',
    dataDir: reader.text('ONEFOLD_DATA_DIR') ?? '.onefold',
    databaseUrl: readDatabaseUrl(reader),
    databasePort: reader.integer('ONEFOLD_DATABASE_PORT', { min: 1, max: PORT_MAX }) ?? null,
    ...readEventStore(reader),
    ...readFeed(reader),
    allowWeakDurability: reader.flag('ONEFOLD_ALLOW_WEAK_DURABILITY') ?? false,
    apiKeys: readApiKeys(reader, 'ONEFOLD_API_KEYS'),
    identitySecrets: readVersionedKeys(reader, 'ONEFOLD_IDENTITY_SECRETS', { bytesMin: IDENTITY_SECRET_BYTES_MIN, bytesMax: 1_024 }),
    masterKeys: readVersionedKeys(reader, 'ONEFOLD_MASTER_KEYS', { bytesMin: MASTER_KEY_BYTES, bytesMax: MASTER_KEY_BYTES }),
    logLevel: reader.word('ONEFOLD_LOG_LEVEL', LOG_LEVELS) ?? 'info',
    rateLimitPerSecond: reader.integer('ONEFOLD_RATE_LIMIT_PER_SECOND', { min: 0, max: RATE_LIMIT_MAX }) || null,
    shutdownTimeoutMs:
      reader.integer('ONEFOLD_SHUTDOWN_TIMEOUT_MS', { min: 0, max: SHUTDOWN_TIMEOUT_MAX_MS }) ?? SHUTDOWN_TIMEOUT_INITIAL_MS,
    lab: readLab(reader),
  };
  faults.throwIfAny('environment');
  return configuration;
}

/** A name of ours that nobody reads is a slip, and the setting that was meant would silently keep its initial value. */
function reportUnknown(env: Environment, faults: FaultList): void {
  for (const name of Object.keys(env)) {
    if (!name.startsWith('ONEFOLD_') || KNOWN_NAMES.includes(name)) continue;
    const ours = KNOWN_NAMES.filter((known) => known.startsWith('ONEFOLD_'));
    faults.add(name, 'Is not a known variable.', didYouMean(name, ours));
  }
}

function readDatabaseUrl(reader: EnvironmentReader): string | null {
  const text = reader.secret('DATABASE_URL');
  if (text === undefined) return null;
  const isPostgres = URL.canParse(text) && ['postgres:', 'postgresql:'].includes(new URL(text).protocol);
  if (!isPostgres)
    reader.fault('DATABASE_URL', 'Must be a PostgreSQL connection string.', 'Write postgresql://user:password@host:5432/database.');
  return text;
}

function readLab(reader: EnvironmentReader): LabAddress {
  const port = reader.integer('LAB_PORT', { min: 0, max: PORT_MAX }) ?? LAB_PORT_INITIAL;
  const smtpPort = reader.integer('LAB_SMTP_PORT', { min: 0, max: PORT_MAX }) ?? (port === 0 ? 0 : port + 1);
  if (smtpPort > PORT_MAX) reader.fault('LAB_SMTP_PORT', 'LAB_PORT + 1 is no port.', 'Set it, or lower LAB_PORT.');
  const url = reader.text('LAB_URL');
  const isHttp = url === undefined || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol));
  if (!isHttp) reader.fault('LAB_URL', 'Must be a URL that starts with http:// or https://.', 'Write for example http://127.0.0.1:4010.');
  return { port, smtpPort, url: url?.replace(/\/+$/, '') ?? null, ledger: reader.text('LAB_LEDGER') ?? null };
}
