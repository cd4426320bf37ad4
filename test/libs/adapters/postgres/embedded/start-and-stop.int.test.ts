import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '#adapters/postgres/embedded/index.js';
import { query } from './query.js';

describe('an embedded PostgreSQL', () => {
  let dataDir: string;
  let server: EmbeddedPostgres;

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'onefold-embedded-'));
    server = await startEmbeddedPostgres({ dataDir });
  });
  afterAll(async () => {
    await server.stop();
    await rm(dataDir, { recursive: true });
  });

  it('has a UTF-8 database with the C locale, checksums and scram passwords', async () => {
    const [row] = await query(
      server.url,
      `select current_database() as database, current_user as role, pg_encoding_to_char(encoding) as encoding, datcollate as collation,
              current_setting('data_checksums') as checksums, current_setting('password_encryption') as passwords
       from pg_database where datname = current_database()`,
    );
    expect(row).toEqual({
      database: 'onefold',
      role: 'onefold',
      encoding: 'UTF8',
      collation: 'C',
      checksums: 'on',
      passwords: 'scram-sha-256',
    });
  });

  it('listens on this machine only, and on no local socket', async () => {
    const settings = await query(
      server.url,
      `select name, setting from pg_settings where name in ('listen_addresses', 'unix_socket_directories')`,
    );
    expect(settings).toEqual([
      { name: 'listen_addresses', setting: '127.0.0.1' },
      { name: 'unix_socket_directories', setting: '' },
    ]);
  });

  it('keeps what is acknowledged', async () => {
    const settings = await query(
      server.url,
      `select name, setting from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') order by name`,
    );
    expect(settings.map(({ setting }) => setting)).toEqual(['on', 'on', 'on']);
  });

  it('lets nobody in without the password, which only its owner can read', async () => {
    const wrong = new URL(server.url);
    wrong.password = 'password';
    await expect(query(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
    const { mode } = await stat(join(dataDir, 'postgres-password'));
    expect(mode & 0o777).toBe(0o600);
  });

  it('gives the application a role that owns its database and is no superuser', async () => {
    await query(server.url, 'create table owned (id int)');
    const [role] = await query(server.url, 'select rolsuper, rolcreatedb from pg_roles where rolname = current_user');
    expect(role).toEqual({ rolsuper: false, rolcreatedb: true });
    await expect(query(server.url, `select pg_read_file('/etc/hostname')`)).rejects.toMatchObject({ code: '42501' });
  });

  it('writes no statement and no value into its log', async () => {
    await query(server.url, 'create table secretive (id text primary key)');
    const twice = `insert into secretive values ('s3cr3t'), ('s3cr3t')`;
    await expect(query(server.url, twice)).rejects.toMatchObject({ code: '23505' });
    expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).not.toContain('s3cr3t');
  });

  it('refuses a second owner and names the first', async () => {
    const again = startEmbeddedPostgres({ dataDir });
    await expect(again).rejects.toMatchObject({
      code: 'data_folder_in_use',
      message: `data folder ${dataDir} is in use by process ${process.pid}; stop it or set ONEFOLD_DATA_DIR`,
    });
  });

  it('is gone after stop, and the next start finds the data', async () => {
    await query(server.url, 'create table kept as select 42 as answer');
    const sessions = new pg.Client({ connectionString: server.url });
    sessions.on('error', () => undefined); // ended by the stop
    await sessions.connect();
    let exits = 0;
    server.onExit(() => (exits += 1));
    await server.stop();
    await expect(query(server.url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    const former = server;
    server = await startEmbeddedPostgres({ dataDir, settings: { work_mem: '5MB' } });
    expect(await query(server.url, `select answer, current_setting('work_mem') as work_mem from kept`)).toEqual([
      { answer: 42, work_mem: '5MB' },
    ]);
    expect(server.adopted).toBe(false);
    expect(exits).toBe(0);
    await former.stop(); // again: nothing happens to the new one
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });
});

describe('a start that cannot be', () => {
  it.each([
    ['fsync', 'off', /fsync: must stay "on"/],
    ['synchronous_commit', 'off', /synchronous_commit: must stay "on"/],
    ['full_page_writes', 'off', /full_page_writes: must stay "on"/],
    ['port', '5432', /port: is decided by the launcher/],
    ['work_mem', "1MB\nfsync = 'off'", /work_mem: the value must be one line/],
    ['Fsync', 'off', /Fsync: a name is lower-case/],
  ])('refuses the setting %s = %s', async (name, value, message) => {
    const start = startEmbeddedPostgres({ dataDir: join(tmpdir(), 'onefold-never-made'), settings: { [name]: value } });
    await expect(start).rejects.toMatchObject({ code: 'setting_refused', message: expect.stringMatching(message) as string });
  });

  it('names a taken port, who has it, and the way out', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'onefold-embedded-'));
    const holder = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => holder.once('listening', resolve));
    const { port } = holder.address() as AddressInfo;
    const error = await startEmbeddedPostgres({ dataDir, port }).catch((each: unknown) => each);
    expect(error).toMatchObject({ code: 'port_taken' });
    const { message } = error as Error;
    expect(message).toContain(`port ${port} on 127.0.0.1 is taken by`);
    expect(message).toContain('ONEFOLD_DATABASE_PORT');
    if (process.platform === 'linux') expect(message).toContain(`process ${process.pid}`);

    // The refused start left neither a lock nor a half-made cluster behind.
    holder.close();
    const server = await startEmbeddedPostgres({ dataDir, port });
    expect(new URL(server.url).port).toBe(String(port));
    await server.stop();
    await rm(dataDir, { recursive: true });
  });

  it('shows what PostgreSQL said, and the next start is free of it', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'onefold-embedded-'));
    const start = startEmbeddedPostgres({ dataDir, settings: { no_such_setting: '1' } });
    await expect(start).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('unrecognized configuration parameter "no_such_setting"') as string,
    });
    const server = await startEmbeddedPostgres({ dataDir });
    await server.stop();
    await rm(dataDir, { recursive: true });
  });
});
