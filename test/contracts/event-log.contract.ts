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

/** In what event logs may differ; whatever is not named here they have in common. */
export interface EventLogTraits {
  /** `gapless`: 1, 2, 3 ... over the whole log. `increasing`: bytes, which only grow. */
  readonly positions: 'gapless' | 'increasing';
  /** Whether an append that is sent again as it was is always told from a first one. If not, it may be told as written, with what is stored. */
  readonly tellsRepetition: boolean;
  /** Whether the log is empty when the suite begins. */
  readonly startsEmpty: boolean;
}

const GAPLESS: EventLogTraits = { positions: 'gapless', tellsRepetition: true, startsEmpty: true };

/** What every event log keeps to. `makeLog` gives a log that nobody else writes to; it is called once. */
export function eventLogContract(name: string, makeLog: () => Promise<EventLogUnderTest>, traits: EventLogTraits = GAPLESS): void {
  describe(`event log: ${name}`, () => {
    let made: EventLogUnderTest;
    let log: EventLog;
    beforeAll(async () => {
      made = await makeLog();
      log = made.log;
    });
    afterAll(() => made.close());

    describe('an empty log', () => {
      it.runIf(traits.startsEmpty)('has its head at 0 and nothing to read', async () => {
        expect(await log.head()).toBe(0n);
        expect(await log.readAll(0n, 10)).toEqual([]);
        expect(await log.readStream(freshStream())).toEqual([]);
      });
    });

    appends(() => log, traits);
    repetition(() => log, traits);
    concurrency(() => log, traits);
    reading(() => log, traits);
    subscribing(() => log);
    dataKeysBesideEvents(() => made, traits);
    chain(() => log);
    contents(() => log);
    bounds(() => log);
  });
}
