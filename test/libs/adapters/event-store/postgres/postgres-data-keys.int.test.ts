import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LogUnavailable, UnreadableSeal } from '#domain';
import { createSealer } from '#adapters/crypto/sealer.js';
import { PostgresDataKeys } from '#adapters/event-store/postgres/postgres-data-keys.js';
import { firstAppend, freshStream, newEvents, numbered, reasonOf, writtenEvents } from '../../../../support/event-log-samples.js';
import { createLogDatabase, openLogWithKeys, type LogWithKeys } from '../../../../support/event-log-postgres.js';
import type { TestDatabase } from '../../../../support/test-database.js';

let database: TestDatabase;
let made: LogWithKeys;
beforeAll(async () => {
  database = await createLogDatabase();
  made = openLogWithKeys(database.url);
});
afterAll(async () => {
  await made.close();
  await database.drop();
});

const PLACE = 'operation/payload';

/** An event with a sealed part, and its new data key. */
async function storeSealed(operationId: string, plaintext: string) {
  const { dataKey, record } = made.sealer.newDataKey(operationId);
  const sealed = made.sealer.seal(dataKey, plaintext, PLACE);
  const [event] = writtenEvents(await made.log.append({ ...firstAppend(freshStream(), newEvents(sealed)), newDataKey: record }));
  return { keyId: record.keyId, stream: event!.stream };
}

async function open(stream: string): Promise<string | undefined> {
  const sealed = reasonOf((await made.log.readStream(stream))[0]!);
  const key = (await made.dataKeys.load([made.sealer.keyIdOf(sealed)])).get(made.sealer.keyIdOf(sealed));
  return key && made.sealer.open(key, sealed, PLACE);
}

it('what was sealed opens again with the stored key', async () => {
  const { stream } = await storeSealed('op_1', 'personal');
  expect(await open(stream)).toBe('personal');
});

it('a destroyed key is gone from the table, and the sealed part can be opened by nobody', async () => {
  const { stream, keyId } = await storeSealed('op_2', 'personal');
  expect(await made.dataKeys.destroy('op_2')).toBe(1);
  expect(await open(stream)).toBeUndefined();
  expect((await made.pool.query('select 1 from onefold.data_keys where key_id = $1', [keyId])).rowCount).toBe(0);
});

it('the database never holds a data key in the clear', async () => {
  const { keyId } = await storeSealed('op_3', 'personal');
  const key = Buffer.from((await made.dataKeys.load([keyId])).get(keyId)!.key);
  const { rows } = await made.pool.query<{ wrapped: string }>('select wrapped from onefold.data_keys where key_id = $1', [keyId]);
  const bytes = Buffer.from(rows[0]!.wrapped.split('.')[2]!, 'base64url');
  expect(bytes).toHaveLength(12 + 32 + 16);
  expect(bytes.includes(key)).toBe(false);
});

it('a record that was moved to another operation is refused', async () => {
  const { keyId } = await storeSealed('op_4', 'personal');
  await made.pool.query(`update onefold.data_keys set operation_id = 'op_5' where key_id = $1`, [keyId]);
  await expect(made.dataKeys.load([keyId])).rejects.toThrow(UnreadableSeal);
});

it('with another master key nothing opens', async () => {
  const { keyId } = await storeSealed('op_6', 'personal');
  const foreign = new PostgresDataKeys(made.pool, createSealer([{ version: 'v1', key: randomBytes(32) }]));
  await expect(foreign.load([keyId])).rejects.toThrow(UnreadableSeal);
});

it('loads none, unknown ones and up to 1,000 at once', async () => {
  expect((await made.dataKeys.load([])).size).toBe(0);
  expect((await made.dataKeys.load(numbered(1_000))).size).toBe(0);
  await expect(made.dataKeys.load(numbered(1_001))).rejects.toThrow(RangeError);
});

it('says that it is unavailable when the database is', async () => {
  const away = openLogWithKeys(database.url);
  await away.close();
  await expect(away.dataKeys.load(['k'])).rejects.toThrow(LogUnavailable);
  await expect(away.dataKeys.destroy('op_1')).rejects.toThrow(LogUnavailable);
});
