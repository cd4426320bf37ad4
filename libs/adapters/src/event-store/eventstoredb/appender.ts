import { setTimeout as delay } from 'node:timers/promises';
import { ErrorType, isCommandError, NO_STREAM, WrongExpectedVersionError, type AppendExpectedRevision } from '@eventstore/db-client';
import { LogUnavailable, type AppendRequest, type AppendResult, type DataKeyRecord, type RecordedEvent } from '#domain';
import type { Logger } from '../../observability/logger.js';
import type { StoredEvent } from '../encoding.js';
import type { EventStoreDbConnection } from './connection.js';
import { toEventData } from './stored-form.js';
import type { StreamReader } from './stream-reader.js';

/** Where data keys are kept: not in the log, which never forgets. */
export interface DataKeyStore {
  /** Durable when it resolves. False where a key of this id was there already. @throws LogUnavailable */
  add(record: DataKeyRecord): Promise<boolean>;
  remove(keyId: string): Promise<void>;
}

export interface AppenderOptions {
  readonly connection: EventStoreDbConnection;
  readonly streams: StreamReader;
  readonly dataKeys: DataKeyStore;
  /** How long an append of unknown result is repeated, in milliseconds; the repetition under way then still gets its own deadline. */
  readonly retryMs: number;
  readonly deadlineMs: number;
  readonly logger?: Logger;
}

/** A leader is elected in a second or so: often enough to be there soon, seldom enough to be no load. */
const RETRY_DELAY_MS = 100;
/** The server will say the same again, and it has stored nothing. */
const REFUSALS: readonly string[] = [
  ...[ErrorType.ACCESS_DENIED, ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED, ErrorType.STREAM_DELETED, ErrorType.INVALID_ARGUMENT],
];

interface Answer {
  readonly result: AppendResult;
  /** Whether the data key that came with the request is needed by what is stored. */
  readonly needsKey: boolean;
}

/** Stores one request. Its result is what the stream holds afterwards, never what an answer alone seems to say. */
export class Appender {
  constructor(private readonly options: AppenderOptions) {}

  /** @throws LogUnavailable when it is not certain what was stored */
  async append(request: AppendRequest, encoded: readonly StoredEvent[]): Promise<AppendResult> {
    const { newDataKey } = request;
    const isNewKey = newDataKey ? await this.options.dataKeys.add(newDataKey) : false;
    const { result, needsKey } = await this.certain(request, encoded);
    // Only what this very call has put there: a key that was there before may be needed by what an earlier try has stored.
    if (newDataKey && isNewKey && !needsKey) await this.removeKey(newDataKey.keyId);
    return result;
  }

  /** Sends the identical request until its result is known; the server recognises it by its ids at its expected revision. */
  private async certain(request: AppendRequest, encoded: readonly StoredEvent[]): Promise<Answer> {
    const giveUpAt = performance.now() + this.options.retryMs;
    for (let isFirst = true; ; isFirst = false) {
      try {
        return await this.attempt(request, encoded, isFirst);
      } catch (error) {
        if (isRefusal(error) || performance.now() >= giveUpAt) {
          throw new LogUnavailable('Events could not be appended with certainty.', { cause: error });
        }
        await delay(RETRY_DELAY_MS);
      }
    }
  }

  private async attempt(request: AppendRequest, encoded: readonly StoredEvent[], isFirst: boolean): Promise<Answer> {
    const actual = await this.send(request, encoded);
    const { stream, events } = request;
    const first = request.expectedRevision === 'no_stream' ? 0 : request.expectedRevision + 1;
    const stored = await this.options.streams.readSegment(stream, first, events.length);
    if (events.every(({ id }, index) => stored[index]?.id === id)) return ours(stored, encoded, actual === null);
    if (actual === null) throw new Error('The append was accepted and its events are not there.');
    const actualRevision = actual === NO_STREAM && stored.length === 0 ? 'no_stream' : highest(actual, stored);
    // With the place still free an earlier try may yet arrive there.
    return { result: { outcome: 'conflict', actualRevision }, needsKey: stored.length === 0 && !isFirst };
  }

  /** The revision that stood against the append; null when it was accepted, be it now or by an earlier try. */
  private async send(request: AppendRequest, encoded: readonly StoredEvent[]): Promise<bigint | typeof NO_STREAM | null> {
    const { connection, deadlineMs } = this.options;
    const expectedRevision: AppendExpectedRevision =
      request.expectedRevision === 'no_stream' ? NO_STREAM : BigInt(request.expectedRevision);
    const events = request.events.map((event, index) => toEventData(event, encoded[index]!));
    const options = { ...connection.callOptions, expectedRevision, deadline: deadlineMs };
    try {
      await connection.call((client) => client.appendToStream(request.stream, events, options));
      return null;
    } catch (error) {
      if (error instanceof WrongExpectedVersionError) return revisionIn(error.actualVersion);
      throw error;
    }
  }

  private async removeKey(keyId: string): Promise<void> {
    try {
      await this.options.dataKeys.remove(keyId);
    } catch (error) {
      // The result of the append is known and stands; a key that opens nothing does no harm, and goes with its operation.
      this.options.logger?.warn({ err: error }, 'a data key without events could not be removed');
    }
  }
}

/** Other bytes under our ids were certainly not stored by this request; the same bytes may have been, by whichever try. */
function ours(stored: readonly RecordedEvent[], encoded: readonly StoredEvent[], wasAccepted: boolean): Answer {
  const { chain, revision } = stored.at(-1)!;
  const isSame = chain === encoded.at(-1)!.chain;
  const result: AppendResult = wasAccepted && isSame ? { outcome: 'written', events: stored } : { outcome: 'duplicate', revision };
  return { result, needsKey: isSame };
}

function revisionIn(actual: AppendExpectedRevision): bigint | typeof NO_STREAM {
  return typeof actual === 'bigint' ? actual : NO_STREAM;
}

function highest(actual: bigint | typeof NO_STREAM, stored: readonly RecordedEvent[]): number {
  return Math.max(actual === NO_STREAM ? -1 : Number(actual), stored.at(-1)?.revision ?? -1);
}

function isRefusal(error: unknown): boolean {
  return error instanceof LogUnavailable || (error instanceof Error && isCommandError(error) && REFUSALS.includes(error.type));
}
