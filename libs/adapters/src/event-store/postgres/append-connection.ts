import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { connectionSettings, isConnectionFault, isRefusedData, type DatabaseOptions } from '../../postgres/database.js';
import type { StoredEvent } from '../encoding.js';
import type { DataKeyRecord } from '#domain';
import { textArray } from './text-array.js';

export interface AppendCommand {
  readonly stream: string;
  /** -1: no stream. */
  readonly expected: number;
  readonly events: readonly StoredEvent[];
  readonly newDataKey: DataKeyRecord | null;
}

export interface CommandRow {
  readonly revisionBefore: number;
  readonly firstPosition: bigint | null;
  readonly duplicate: boolean;
}

/** The batch may or may not have been stored; the identical batch may be sent again. */
export class AppendUncertain extends Error {
  override readonly name = 'AppendUncertain';
}

/** Something in the batch can't be stored, whoever it stands beside; nothing of it was. */
export class AppendRefused extends Error {
  override readonly name = 'AppendRefused';
}

/** A goodbye to a server that does not answer is not waited for. */
const CLOSE_TIMEOUT_MS = 2_000;

const APPEND = 'select revision_before, first_position, duplicate from onefold.append_events($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12)';

/** The one connection that appends: batches follow each other, so a second one could only wait for the lock of the first. */
export class AppendConnection {
  private client: pg.Client | null = null;

  constructor(private readonly options: DatabaseOptions) {}

  /** @throws AppendUncertain when the connection broke; AppendRefused and any other error mean that nothing was stored */
  async append(commands: readonly AppendCommand[]): Promise<CommandRow[]> {
    const values = parameters(commands);
    const client = await this.connected();
    try {
      const { rows } = await client.query<[number, string | null, boolean]>({
        name: 'append-events',
        text: APPEND,
        values,
        rowMode: 'array',
      });
      return rows.map(([revisionBefore, position, duplicate]) => ({
        revisionBefore,
        firstPosition: position === null ? null : BigInt(position),
        duplicate,
      }));
    } catch (error) {
      if (isRefusedData(error)) throw new AppendRefused('The database refuses what is being appended.', { cause: error });
      if (!isConnectionFault(error)) throw error;
      await this.close();
      throw new AppendUncertain('The connection broke while events were being appended.', { cause: error });
    }
  }

  async close(): Promise<void> {
    const { client } = this;
    this.client = null;
    if (!client) return;
    const waiting = new AbortController();
    // Closing a broken connection may fail; it is gone either way.
    const ended = client.end().catch(() => undefined);
    await Promise.race([ended, delay(CLOSE_TIMEOUT_MS, undefined, { signal: waiting.signal }).catch(() => undefined)]);
    waiting.abort();
  }

  private async connected(): Promise<pg.Client> {
    if (this.client) return this.client;
    const client = new pg.Client(connectionSettings({ ...this.options, applicationName: 'onefold-append', durable: true }));
    client.on('error', () => {
      // An append under way is told by its own query; an idle connection is simply opened anew by the next one.
      if (this.client === client) this.client = null;
    });
    try {
      await client.connect();
    } catch (error) {
      await client.end().catch(() => undefined); // It never stood.
      throw new AppendUncertain('No connection to the event log.', { cause: error });
    }
    this.client = client;
    return client;
  }
}

function parameters(commands: readonly AppendCommand[]): unknown[] {
  const events = commands.flatMap((command) => command.events);
  const keys = commands.flatMap(({ newDataKey }, index) => (newDataKey ? [{ command: index + 1, ...newDataKey }] : []));
  const texts = <T>(items: readonly T[], pick: (item: T) => string) => textArray(items.map(pick));
  const integers = (values: readonly number[]) => `{${values.join(',')}}`;
  return [
    texts(commands, ({ stream }) => stream),
    integers(commands.map(({ expected }) => expected)),
    integers(commands.map((command) => command.events.length)),
    texts(events, ({ id }) => id),
    texts(events, ({ type }) => type),
    texts(events, ({ data }) => data),
    texts(events, ({ metadata }) => metadata),
    texts(events, ({ chain }) => chain),
    integers(keys.map(({ command }) => command)),
    texts(keys, ({ keyId }) => keyId),
    texts(keys, ({ operationId }) => operationId),
    texts(keys, ({ wrapped }) => wrapped),
  ];
}
