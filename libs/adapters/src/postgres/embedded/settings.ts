import { EmbeddedPostgresError } from './errors.js';

/** Values of the PostgreSQL configuration, by name. */
export type Settings = Readonly<Record<string, string>>;

/** What makes an acknowledged append survive a power cut. Also passed on the command line, which no file can overrule. */
export const DURABILITY: Settings = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' };

/** Decided by the launcher; as a setting they would break it. */
const RESERVED = new Set([
  ...['port', 'listen_addresses', 'unix_socket_directories', 'data_directory', 'config_file', 'hba_file', 'ident_file'],
  ...['include', 'include_dir', 'include_if_exists', 'external_pid_file', 'logging_collector', 'log_destination', 'allow_alter_system'],
]);

interface DefaultSetting {
  readonly name: string;
  readonly value: string;
  readonly reason: string;
}

const DEFAULTS: readonly DefaultSetting[] = [
  {
    name: 'shared_buffers',
    value: '256MB',
    reason: 'the tail of the log, due work and their indexes stay in memory; small beside a laptop',
  },
  { name: 'max_wal_size', value: '2GB', reason: 'checkpoints come by the clock and not by volume, also in a burst' },
  {
    name: 'checkpoint_timeout',
    value: '15min',
    reason: 'after a checkpoint each page is logged whole once; fewer checkpoints, less to write',
  },
  { name: 'max_connections', value: '100', reason: 'pools of all parts of one machine with room for a person with psql' },
  {
    name: 'idle_in_transaction_session_timeout',
    value: '60s',
    reason: 'a forgotten transaction would hold back vacuum and hold its locks',
  },
  { name: 'jit', value: 'off', reason: 'all our statements are short; compiling one takes longer than running it' },
  { name: 'autovacuum', value: 'on', reason: 'it also prevents transaction id wraparound' },
  { name: 'autovacuum_naptime', value: '15s', reason: 'due work is a small table that is updated all the time: clean it before it grows' },
  { name: 'autovacuum_vacuum_scale_factor', value: '0.05', reason: 'a fifth of a big table (the default) is too long to wait' },
  {
    name: 'autovacuum_vacuum_insert_scale_factor',
    value: '0.05',
    reason: 'the log only grows: freeze it in small steps, not in one big scan',
  },
  { name: 'autovacuum_analyze_scale_factor', value: '0.02', reason: 'the planner must know the newest positions, where every reader is' },
  { name: 'timezone', value: 'UTC', reason: 'the same answers on every machine' },
  { name: 'log_timezone', value: 'UTC', reason: 'the same zone as our own log lines' },
  {
    name: 'log_min_messages',
    value: 'log',
    reason: 'a refused statement is an answer to its client, who logs it; here it would fill the disk',
  },
  { name: 'log_min_error_statement', value: 'panic', reason: 'statements may carry data, which does not belong into a log' },
  { name: 'cluster_name', value: 'onefold', reason: 'shows in the list of processes' },
];

/** Refuses, by name, what would break durability or the launcher. */
export function checkSettings(settings: Settings): void {
  for (const [name, value] of Object.entries(settings)) {
    const refuse = (why: string) => {
      throw new EmbeddedPostgresError('setting_refused', `PostgreSQL setting ${name}: ${why}`);
    };
    if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(name)) refuse('a name is lower-case letters, digits and underscores');
    if (RESERVED.has(name)) refuse('is decided by the launcher; remove it');
    if (typeof value !== 'string' || /[\0\r\n]/.test(value)) refuse('the value must be one line of text');
    if (name in DURABILITY && value !== DURABILITY[name]) {
      refuse(`must stay "${DURABILITY[name]}", or acknowledged operations would be lost in a crash; remove it`);
    }
  }
}

/** Text of `onefold.conf`. Defaults give way to `settings`. */
export function renderConfiguration(config: { source: string; port: number; walCompression: string; settings: Settings }): string {
  const lines = DEFAULTS.filter(({ name }) => !(name in config.settings)).map(
    ({ name, value, reason }) => `${line(name, value)} # ${reason}`,
  );
  const compression = { wal_compression: config.walCompression, ...config.settings };
  return [
    `# Written by Onefold at every start, for ${config.source}. Changes made here are lost.`,
    `${line('port', String(config.port))}`,
    `${line('listen_addresses', '127.0.0.1')} # this machine only`,
    `${line('unix_socket_directories', '')} # one way in, the same on every platform`,
    `${line('allow_alter_system', 'off')} # one place for settings: this one`,
    ...lines,
    ...Object.entries({ ...compression, ...DURABILITY }).map(([name, value]) => line(name, value)),
    '',
  ].join('\n');
}

function line(name: string, value: string): string {
  // In a configuration file a backslash escapes, and a quote is doubled.
  return `${name} = '${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** The same configuration whatever its port, to see whether a running server has the one that is asked for. */
export function withoutPort(configuration: string | undefined): string | undefined {
  return configuration?.replace(/^port = .*$/m, '');
}
