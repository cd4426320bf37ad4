import { describe, expect, it } from 'vitest';
import type { Engine } from '#adapters/runtime/open-engine.js';
import type { EventPublisher } from '#adapters/broker/kafka/publisher.js';
import type { RelayOptions } from '#apps/relay/src/relay.js';
import type { ProviderAdapter } from '#domain';
import { aimedCases, allCases } from '../../../proof/faults/cases.js';
import { CRASH_POINTS, WITHOUT_POINTS, FAULTS_ITEMS, isAt, type Moment, type Port } from '../../../proof/faults/crash-points.js';
import { decoration } from '../../../proof/faults/decorate.js';
import { relayDecoration } from '../../../proof/faults/decorate-relay.js';

const all = allCases();
const aimed = aimedCases();

describe('crash points', () => {
  it('have names of their own', () => {
    const names = CRASH_POINTS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('stand for every item of the list in the design, or say why there is none', () => {
    const covered = new Set([...CRASH_POINTS.map(({ item }) => item), ...Object.keys(WITHOUT_POINTS)]);
    expect(FAULTS_ITEMS.filter((item) => !covered.has(item))).toEqual([]);
  });

  it('each have a case for each class that can reach them, and each way of restarting', () => {
    for (const point of CRASH_POINTS) {
      const variants = point.deed === 'outlive_the_lease' ? ['race'] : ['restart', 'race'];
      const expected = point.classes.flatMap((labClass) => variants.map((variant) => `${labClass} ${variant}`));
      const cases = all.filter(({ crashPoints }) => crashPoints.includes(point));
      expect([point.name, cases.map(({ labClass, variant }) => `${labClass} ${variant}`)]).toEqual([point.name, expected]);
    }
  });

  it('each have exactly one case in the small matrix, with the class they are aimed at', () => {
    for (const point of CRASH_POINTS) {
      const cases = aimed.filter(({ crashPoints }) => crashPoints.includes(point));
      expect([point.name, ...cases.map(({ labClass }) => labClass)]).toEqual([point.name, point.aim]);
      expect(point.classes).toContain(point.aim);
    }
  });

  it('of the ports are all told by the decoration, and the decoration tells no place without a point', async () => {
    const told: [Port, Moment, readonly string[]][] = [];
    const { engine, providers } = decoration((...place) => void told.push(place));
    const rows = [{ operationId: 'o', provider: 'p' }];
    const ports = {
      log: { append: async () => ({}), readStream: async () => [], readStreams: async () => new Map() },
      sealer: { newDataKey: () => ({}) },
      dataKeys: { load: async () => new Map() },
      dueWork: { take: async () => rows, set: async () => undefined },
      checkpoints: { advance: async () => true },
      derivedPool: { query: async () => ({ rows: [] }) },
    } as unknown as Engine;
    const decorated = engine!(ports);
    const types = CRASH_POINTS.filter(({ port }) => port === 'log.append').map(({ detail }) => detail!);
    for (const type of types) {
      await decorated.log.append({ events: [{ event: { type } }] } as unknown as Parameters<Engine['log']['append']>[0]);
    }
    await decorated.log.readStream('s');
    await decorated.log.readStreams(['s']);
    decorated.sealer.newDataKey('o');
    await decorated.dataKeys.load(['k']);
    await decorated.dueWork.take([], 1);
    await decorated.dueWork.set([{ operationId: 'o', provider: 'p', revision: 0, dueAtMs: null }]);
    await decorated.checkpoints.advance('due-work', 0n, 1n);
    await decorated.checkpoints.advance('operation-view', 0n, 1n);
    await decorated.derivedPool.query({ name: 'write-operation_view', text: '' });
    const adapter = { call: async () => ({}), lookUp: async () => ({}), close: async () => undefined } as unknown as ProviderAdapter;
    const provider = providers!(new Map([['p', adapter]])).get('p')!;
    await provider.call({} as Parameters<ProviderAdapter['call']>[0]);
    await provider.lookUp!({} as Parameters<ProviderAdapter['call']>[0]);

    const relay = relayDecoration([], (...place) => void told.push(place));
    await relay.publisher!({ publish: async () => undefined } satisfies EventPublisher).publish([]);
    const leadership = { tryAcquire: async () => ({ advance: async () => true }), close: async () => undefined };
    await (await relay.leadership!(leadership as unknown as RelayOptions['leadership']).tryAcquire())!.advance(1n);

    // A real server and a real socket tell these; the cases fail where they do not.
    const outside = ({ port, moment }: { port: Port; moment: Moment }) =>
      port === 'http.answer' || (/^(provider|publisher)\./.test(port) && moment === 'during');
    const silent = CRASH_POINTS.filter((point) => !outside(point) && !told.some((place) => isAt(point, ...place)));
    expect(silent.map(({ name }) => name)).toEqual([]);
    // In the midst of an append is a point of its own only where the answer decides what comes next.
    const stray = told.filter((place) => place[1] !== 'during' && !CRASH_POINTS.some((point) => isAt(point, ...place)));
    expect(stray).toEqual([]);
  });
});
