import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DataKeys, EventLog, Sealer } from '#domain';
import { freshStream } from '../support/event-log-samples.js';
import { appends, concurrency, repetition } from './event-log/appending.js';
import { bounds } from './event-log/bounds.js';
import { reading, subscribing } from './event-log/reading.js';
import { chain, contents, dataKeysBesideEvents } from './event-log/stored-events.js';

export interface EventLogUnderTest {
  readonly log: EventLog;
  /** The data keys that are stored beside this log. */
  readonly dataKeys: DataKeys;
  readonly sealer: Sealer;
  close(): Promise<void>;
}

/** What every event log keeps to. `makeLog` gives an empty log that nobody else writes to; it is called once. */
export function eventLogContract(name: string, makeLog: () => Promise<EventLogUnderTest>): void {
  describe(`event log: ${name}`, () => {
    let made: EventLogUnderTest;
    let log: EventLog;
    beforeAll(async () => {
      made = await makeLog();
      log = made.log;
    });
    afterAll(() => made.close());

    describe('an empty log', () => {
      it('has its head at 0 and nothing to read', async () => {
        expect(await log.head()).toBe(0n);
        expect(await log.readAll(0n, 10)).toEqual([]);
        expect(await log.readStream(freshStream())).toEqual([]);
      });
    });

    appends(() => log);
    repetition(() => log);
    concurrency(() => log);
    reading(() => log);
    subscribing(() => log);
    dataKeysBesideEvents(() => made);
    chain(() => log);
    contents(() => log);
    bounds(() => log);
  });
}
