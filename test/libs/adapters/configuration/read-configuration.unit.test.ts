import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigurationFaults, type Fault } from '#adapters/configuration/faults.js';
import { readConfiguration } from '#adapters/configuration/read-configuration.js';
import { KNOWN_NAMES, VARIABLES } from '#adapters/configuration/variables.js';

const folder = mkdtempSync(join(tmpdir(), 'onefold-configuration-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(contents: string): string {
  const file = join(folder, `${Math.random()}`);
  writeFileSync(file, contents);
  return file;
}

function faultsOf(env: Record<string, string>): readonly Fault[] {
  try {
    readConfiguration(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationFaults) return error.faults;
    throw error;
  }
}

describe('an empty environment', () => {
  it('gives the one-machine default (design/contracts.md, "Configuration")', () => {
    expect(readConfiguration({})).toEqual({
      host: '127.0.0.1',
      port: 3000,
      catalogueFile: 'onefold.yaml',
      dataDir: '.onefold',
      databaseUrl: null,
      databasePort: null,
      eventStore: 'postgres',
      eventStoreUrl: null,
      feed: 'direct',
      kafka: null,
      allowWeakDurability: false,
      apiKeys: [],
      identitySecrets: null,
      masterKeys: null,
      logLevel: 'info',
      rateLimitPerSecond: null,
      shutdownTimeoutMs: 15_000,
      lab: { port: 4010, smtpPort: 4011, url: null, ledger: null },
    });
  });

  it('is what an empty variable counts as, and others of the machine are left alone', () => {
    expect(readConfiguration({ PORT: '', ONEFOLD_API_KEYS: '', NODE_ENV: 'production', HOME: '/root' })).toEqual(readConfiguration({}));
  });
});

describe('what is set', () => {
  it('is read, typed', () => {
    const configuration = readConfiguration({
      HOST: '0.0.0.0',
      PORT: '0',
      LAB_PORT: '5000',
      LAB_URL: 'http://lab.example:4010/',
      LAB_LEDGER: 'memory',
      DATABASE_URL: 'postgresql://u:p@db/onefold',
      EVENT_STORE: 'postgres',
      FEED: 'direct',
      ONEFOLD_ALLOW_WEAK_DURABILITY: 'true',
      ONEFOLD_LOG_LEVEL: 'debug',
      ONEFOLD_RATE_LIMIT_PER_SECOND: '50',
      ONEFOLD_SHUTDOWN_TIMEOUT_MS: '0',
      ONEFOLD_DATABASE_PORT: '5433',
    });
    expect(configuration).toMatchObject({
      host: '0.0.0.0',
      port: 0,
      lab: { port: 5000, smtpPort: 5001, url: 'http://lab.example:4010', ledger: 'memory' },
      databaseUrl: 'postgresql://u:p@db/onefold',
      databasePort: 5433,
      allowWeakDurability: true,
      logLevel: 'debug',
      rateLimitPerSecond: 50,
      shutdownTimeoutMs: 0,
    });
    expect(readConfiguration({ FEED: 'kafka', KAFKA_BROKERS: 'kafka-1:9092, [::1]:9093' })).toMatchObject({
      feed: 'kafka',
      kafka: { brokers: ['kafka-1:9092', '[::1]:9093'], partitions: 8, replicationFactor: 3, sessionTimeoutMs: 30_000 },
    });
    expect(readConfiguration({ EVENT_STORE: 'eventstoredb', EVENTSTORE_URL: 'esdb://u:p@host:2113?tls=true' })).toMatchObject({
      eventStore: 'eventstoredb',
      eventStoreUrl: 'esdb://u:p@host:2113?tls=true',
    });
    expect(readConfiguration({ ONEFOLD_RATE_LIMIT_PER_SECOND: '0' }).rateLimitPerSecond).toBeNull();
    expect(readConfiguration({ LAB_PORT: '0' }).lab.smtpPort).toBe(0);
  });

  it('are the API keys', () => {
    const { apiKeys } = readConfiguration({ ONEFOLD_API_KEYS: 'abcdefghijklmnop:t1:agent, ABCDEFGHIJKLMNOP:t2:operator' });
    expect(apiKeys).toEqual([
      { key: 'abcdefghijklmnop', tenant: 't1', role: 'agent' },
      { key: 'ABCDEFGHIJKLMNOP', tenant: 't2', role: 'operator' },
    ]);
  });

  it('are the versioned keys, in hex or base64, the current one first', () => {
    const bytes = Uint8Array.from({ length: 32 }, (_, n) => n);
    const hex = Buffer.from(bytes).toString('hex');
    const base64 = Buffer.from(bytes).toString('base64');
    const { masterKeys, identitySecrets } = readConfiguration({
      ONEFOLD_MASTER_KEYS: `v2:${hex},v1:${base64}`,
      ONEFOLD_IDENTITY_SECRETS: `v1:${hex}${hex}`,
    });
    expect(masterKeys!.map(({ version, bytes: key }) => [version, [...key]])).toEqual([
      ['v2', [...bytes]],
      ['v1', [...bytes]],
    ]);
    expect(identitySecrets!.map(({ bytes: secret }) => secret.length)).toEqual([64]);
  });

  it('may be a file that NAME_FILE names', () => {
    const file = fileWith('abcdefghijklmnop:t1:agent\n');
    expect(readConfiguration({ ONEFOLD_API_KEYS_FILE: file }).apiKeys).toHaveLength(1);
    expect(readConfiguration({ DATABASE_URL_FILE: fileWith('postgres://db/x\n') }).databaseUrl).toBe('postgres://db/x');
  });
});

describe('faults', () => {
  it('are all told at once, by name', () => {
    const env = { PORT: '70000', HOST: 'ok', LAB_URL: 'lab', ONEFOLD_LOG_LEVEL: 'loud', ONEFOLD_PORT: '1', FEED: 'pigeon' };
    expect(faultsOf(env).map(({ path }) => path)).toEqual(['ONEFOLD_PORT', 'PORT', 'FEED', 'ONEFOLD_LOG_LEVEL', 'LAB_URL']);
  });

  const table: readonly [name: string, value: string, rule: RegExp][] = [
    ['PORT', '3000 ', /integer from 0 to 65535/],
    ['PORT', '-1', /integer/],
    ['LAB_PORT', '0x10', /integer/],
    ['ONEFOLD_DATABASE_PORT', '0', /from 1/],
    ['ONEFOLD_SHUTDOWN_TIMEOUT_MS', '15s', /integer/],
    ['ONEFOLD_ALLOW_WEAK_DURABILITY', 'yes', /true or false/],
    ['EVENT_STORE', 'eventstoredb', /needed with EVENT_STORE=eventstoredb/],
    ['EVENT_STORE', 'mongo', /postgres, eventstoredb/],
    ['EVENTSTORE_URL', 'http://host', /EventStoreDB connection string/],
    ['FEED', 'kafka', /needed with FEED=kafka/],
    ['FEED', 'pigeon', /direct, kafka/],
    ['KAFKA_BROKERS', 'kafka-1', /host:port/],
    ['KAFKA_BROKERS', 'kafka-1:9092,', /host:port/],
    ['KAFKA_BROKERS', 'kafka-1:99999', /host:port/],
    ['ONEFOLD_KAFKA_PARTITIONS', '0', /from 1/],
    ['ONEFOLD_KAFKA_REPLICATION_FACTOR', '0', /from 1/],
    ['ONEFOLD_KAFKA_SESSION_TIMEOUT_MS', '5999', /from 6000/],
    ['ONEFOLD_KAFKA_SESSION_TIMEOUT_MS', '300001', /to 300000/],
    ['DATABASE_URL', 'mysql://db', /PostgreSQL/],
    ['ONEFOLD_CATALOG', 'x', /not a known variable/],
    ['ONEFOLD_LOG_LEVEL_FILE', 'x', /not a known variable/],
    ['ONEFOLD_API_KEYS_FILE', '/nowhere', /can't be read/],
  ];
  it.each(table)('%s=%s', (name, value, rule) => {
    expect(faultsOf({ [name]: value })).toEqual([expect.objectContaining({ rule: expect.stringMatching(rule) as string })]);
  });

  const key = 'abcdefghijklmnop';
  const keys: readonly [value: string, path: string, rule: RegExp][] = [
    [`${key}:t1`, 'ONEFOLD_API_KEYS[1]', /three parts/],
    [`${key}:t1:agent:x`, 'ONEFOLD_API_KEYS[1]', /three parts/],
    [`${key}:t1:agent,`, 'ONEFOLD_API_KEYS[2]', /three parts/],
    ['abcdefghijklmno:t1:agent', 'ONEFOLD_API_KEYS[1]', /16 to 256/],
    ['abcdefghijk mnopq:t1:agent', 'ONEFOLD_API_KEYS[1]', /characters/],
    [`${key}:t 1:agent`, 'ONEFOLD_API_KEYS[1]', /tenant/],
    [`${key}:t1:agnet`, 'ONEFOLD_API_KEYS[1]', /role/],
    [`${key}:t1:agent,${key}:t2:admin`, 'ONEFOLD_API_KEYS[2]', /twice/],
  ];
  it.each(keys)('of the API keys %s', (value, path, rule) => {
    const faults = faultsOf({ ONEFOLD_API_KEYS: value });
    expect(faults).toEqual([expect.objectContaining({ path, rule: expect.stringMatching(rule) as string })]);
  });

  const hex = 'ab'.repeat(32);
  it.each([
    ['ONEFOLD_MASTER_KEYS', hex, /start with a version/],
    ['ONEFOLD_MASTER_KEYS', `v1:${hex}ab`, /exactly 32 bytes/],
    ['ONEFOLD_MASTER_KEYS', `v1:${hex.slice(2)}`, /exactly 32 bytes/],
    ['ONEFOLD_MASTER_KEYS', `v1:${hex},v1:${'cd'.repeat(32)}`, /twice/],
    ['ONEFOLD_IDENTITY_SECRETS', 'v1:abcd', /at least 32 bytes/],
    ['ONEFOLD_IDENTITY_SECRETS', `v0:${hex}`, /start with a version/],
    ['ONEFOLD_IDENTITY_SECRETS', 'v1:not hex, nor base64', /32 bytes/],
  ])('of %s', (name, value, rule) => {
    expect(faultsOf({ [name]: value })[0]).toMatchObject({
      path: expect.stringContaining(name) as string,
      rule: expect.stringMatching(rule) as string,
    });
  });

  it('never hold a secret', () => {
    const secrets = {
      ONEFOLD_API_KEYS: 'hunter22hunter22:t1:nobody',
      ONEFOLD_MASTER_KEYS: 'v1:hunter22',
      DATABASE_URL: 'mysql://u:hunter22@db',
    };
    expect(() => readConfiguration(secrets)).toThrow(ConfigurationFaults);
    expect(() => readConfiguration(secrets)).not.toThrow(/hunter22/);
  });

  it('a secret given twice is one, also as an empty or an endless file', () => {
    const both = { ONEFOLD_API_KEYS: 'abcdefghijklmnop:t1:agent', ONEFOLD_API_KEYS_FILE: fileWith('abcdefghijklmnop:t1:agent') };
    expect(faultsOf(both)[0]!.rule).toBe('Set both as ONEFOLD_API_KEYS and as ONEFOLD_API_KEYS_FILE.');
    expect(faultsOf({ ONEFOLD_API_KEYS_FILE: fileWith('\n') })[0]!.rule).toMatch(/is empty/);
    expect(faultsOf({ ONEFOLD_API_KEYS_FILE: fileWith('x'.repeat(65 * 1024)) })[0]!.rule).toMatch(/larger than 64 KiB/);
  });

  it('suggest the name that was meant', () => {
    expect(faultsOf({ ONEFOLD_CATALOG: 'x' })[0]!.wayOut).toBe('Did you mean "ONEFOLD_CATALOGUE"?');
  });
});

describe('docs/configuration.md', () => {
  const text = readFileSync(new URL('../../../../docs/configuration.md', import.meta.url), 'utf8');
  const rows = [...text.matchAll(/^\| `([A-Z_]+)`( \\?\*)? *\|/gm)];

  it('describes the same variables as the code, and marks the secrets', () => {
    const described = rows.map(([, name, mark]) => ({ name, isSecret: mark !== undefined }));
    const byName = (one: { name?: string | undefined }, other: { name?: string | undefined }) => (one.name! < other.name! ? -1 : 1);
    expect(described.sort(byName)).toEqual([...VARIABLES].sort(byName));
  });

  it('and the code reads each of them', () => {
    const read = new Set<string>();
    const env = new Proxy<Record<string, string | undefined>>({}, { get: (_, name) => void read.add(String(name)) });
    readConfiguration(env);
    expect([...read].sort()).toEqual([...KNOWN_NAMES].sort());
  });
});
