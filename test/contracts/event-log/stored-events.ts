import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EventLog, type OperationEvent, type RecordedEvent } from '#domain';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { chainIsIntact } from '#adapters/event-store/encoding.js';
import {
  appendBehind,
  failure,
  firstAppend,
  freshStream,
  newEvents,
  numbered,
  reasonOf,
  sampleMetadata,
  seedStream,
  writtenEvents,
} from '../../support/event-log-samples.js';
import type { EventLogTraits, EventLogUnderTest } from '../event-log.contract.js';

export function dataKeysBesideEvents(made: () => EventLogUnderTest, traits: EventLogTraits): void {
  describe('a new data key', () => {
    const isStored = async (keyId: string) => (await made().dataKeys.load([keyId])).has(keyId);

    it('is stored with the events that were written', async () => {
      const { log, sealer, dataKeys } = made();
      const { dataKey, record } = sealer.newDataKey('op_1');
      const sealed = sealer.seal(dataKey, 'secret', 'place');
      writtenEvents(await log.append({ ...firstAppend(freshStream(), newEvents(sealed)), newDataKey: record }));
      const loaded = (await dataKeys.load([sealer.keyIdOf(sealed)])).get(record.keyId)!;
      expect(sealer.open(loaded, sealed, 'place')).toBe('secret');
    });

    it('is not kept for an append that was not written', async () => {
      const { log, sealer } = made();
      const [first] = await seedStream(log, 'a');
      const { record } = sealer.newDataKey('op_2');
      const stale = { ...firstAppend(first!.stream, newEvents('x')), newDataKey: record };
      expect((await log.append(stale)).outcome).toBe('conflict');
      expect(await isStored(record.keyId)).toBe(false);
      const request = firstAppend(freshStream(), newEvents('b'));
      await log.append(request);
      const again = await log.append({ ...request, newDataKey: record });
      if (traits.tellsRepetition) expect(again.outcome).toBe('duplicate');
      // Told as written it may be what wrote the events, and their key must not be lost.
      expect(await isStored(record.keyId)).toBe(!traits.tellsRepetition && again.outcome === 'written');
    });

    it('belongs to its own append among many at once', async () => {
      const { log, sealer } = made();
      const [taken] = await seedStream(log, 'a');
      const keys = numbered(12).map((operation) => sealer.newDataKey(operation).record);
      const isWinner = (index: number) => index % 3 !== 1;
      await Promise.all(
        keys.map((newDataKey, index) =>
          log.append({ ...firstAppend(isWinner(index) ? freshStream() : taken!.stream, newEvents('b')), newDataKey }),
        ),
      );
      expect(await Promise.all(keys.map(({ keyId }) => isStored(keyId)))).toEqual(keys.map((_, index) => isWinner(index)));
    });

    it('once destroyed leaves the events readable and the sealed part closed for good', async () => {
      const { log, sealer, dataKeys } = made();
      const { record } = sealer.newDataKey('op_destroy');
      const second = sealer.newDataKey('op_destroy').record;
      const other = sealer.newDataKey('op_keep').record;
      const streams = await Promise.all(
        [record, second, other].map(async (newDataKey) => {
          const request = { ...firstAppend(freshStream(), newEvents('sealed')), newDataKey };
          return writtenEvents(await log.append(request))[0]!.stream;
        }),
      );
      expect(await dataKeys.destroy('op_destroy')).toBe(2);
      expect(await dataKeys.destroy('op_destroy')).toBe(0);
      expect([...(await dataKeys.load([record.keyId, second.keyId, other.keyId])).keys()]).toEqual([other.keyId]);
      for (const stream of streams) expect(chainIsIntact(nodeHashing, await log.readStream(stream))).toBe(true);
    });
  });
}

export function chain(log: () => EventLog): void {
  describe('the chain of hashes', () => {
    const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

    it('covers the previous hash and the stored texts of each event', async () => {
      const [first] = await seedStream(log(), 'a');
      writtenEvents(await log().append(appendBehind(first!, newEvents('b', 'é\n"\\'))));
      let previous = '0'.repeat(64);
      for (const { id, event, metadata, chain: hash } of await log().readStream(first!.stream)) {
        expect(hash).toBe(sha256([previous, id, event.type, JSON.stringify(event.data), JSON.stringify(metadata)].join('\n')));
        previous = hash;
      }
    });

    it('is intact as it is read, and not after any change', async () => {
      const [first] = await seedStream(log(), 'a', 'b', 'c');
      const events = await log().readStream(first!.stream);
      expect(chainIsIntact(nodeHashing, events)).toBe(true);
      const [a, b, c] = events as [RecordedEvent, RecordedEvent, RecordedEvent];
      const changed: RecordedEvent[][] = [
        [a, { ...b, event: failure('B') }, c],
        [a, { ...b, metadata: { ...b.metadata, actor: 'agent-2' } }, c],
        [a, { ...b, id: a.id }, c],
        [a, { ...b, event: { ...b.event, type: 'OperationCancelled' } as OperationEvent }, c],
        [a, { ...b, chain: c.chain }, c],
        [a, c],
        [b, c],
        [b, a, c],
      ];
      for (const stream of changed) expect(chainIsIntact(nodeHashing, stream)).toBe(false);
    });
  });
}

export function contents(log: () => EventLog): void {
  describe('what an event carries', () => {
    const stored = async (...reasons: string[]) => {
      const [first] = await seedStream(log(), ...reasons);
      const events = await log().readStream(first!.stream);
      expect(chainIsIntact(nodeHashing, events)).toBe(true);
      return events.map(reasonOf);
    };

    it('may be 256 KiB long', async () => {
      const big = randomBytes(192 * 1024).toString('base64');
      expect(big).toHaveLength(256 * 1024);
      expect((await stored(big, 'small', big)).map(({ length }) => length)).toEqual([big.length, 5, big.length]);
    });

    it.each([
      ['quotes', `"double" 'single' \`back\` ""`],
      ['backslashes', String.raw`\ \\ \" \n \u0000 \x41 C:\temp`],
      ['control characters', '\u0000 \u0001 \t \n \r \u001f \u007f \u0085'],
      ['array syntax', '{a,b} {"a","b"} NULL null \\N {} , ;'],
      ['SQL', "'); drop table onefold.events; -- $1 $$ %s"],
      ['letters of all planes', 'é ß Жизнь 日本語 \u{1F600} e\u0301 \u{10FFFF} \uFFFD \uFEFF \u2028\u2029'],
      ['lone surrogates', 'a\ud800b \udfff'],
      ['nothing', ''],
      ['blanks', '  leading, trailing \n'],
    ])('comes back exactly: %s', async (_, text) => {
      expect(await stored(text, `${text}${text}`)).toEqual([text, `${text}${text}`]);
    });

    it('comes back exactly: any texts', async () => {
      const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 60 }), fc.string({ unit: 'grapheme', maxLength: 60 }));
      await fc.assert(
        fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 16 }), async (texts) => {
          expect(await stored(...texts)).toEqual(texts);
        }),
        { numRuns: 40 },
      );
    });

    it('comes back exactly in the metadata as well', async () => {
      const metadata = { ...sampleMetadata(), actor: 'Zoë "Z" \\ \u0000\n', traceparent: null };
      const [event] = newEvents('a');
      const stream = freshStream();
      await log().append(firstAppend(stream, [{ ...event!, metadata }]));
      expect((await log().readStream(stream))[0]!.metadata).toEqual(metadata);
    });
  });
}
