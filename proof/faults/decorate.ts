import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import { Inject, Module, type DynamicModule } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import type { Engine } from '#adapters/runtime/open-engine.js';
import type { Decoration } from '#apps/standalone/src/standalone.js';
import type { AppendRequest, ProviderAdapter } from '#domain';
import type { Moment, Port } from './crash-points.js';

/** Told of each place a process comes to; returns if it may go on. */
export type Reached = (port: Port, moment: Moment, details: readonly string[]) => void;

/** A statement has been handed over by then, and its answer has rarely come back. */
const UNDER_WAY_MS = 1;
const VIEW_WRITE = 'write-operation_view';

/** The ports of a process, wrapped so that each place is told to `reached`. */
export function decoration(reached: Reached): Decoration {
  watchRequests(reached);
  return {
    engine: (engine) => decorateEngine(engine, reached),
    providers: (providers) => new Map([...providers].map(([name, provider]) => [name, decorateProvider(provider, reached)])),
    modules: [AnswerModule.with(reached)],
  };
}

function decorateEngine(engine: Engine, reached: Reached): Engine {
  return {
    ...engine,
    log: overriding(engine.log, {
      append: (request) => throughout(reached, 'log.append', detailsOf(request), () => engine.log.append(request)),
      readStream: around(reached, 'log.readStream', (stream) => engine.log.readStream(stream)),
      readStreams: around(reached, 'log.readStreams', (streams) => engine.log.readStreams(streams)),
    }),
    sealer: overriding(engine.sealer, {
      newDataKey: (operationId) => {
        reached('sealer.newDataKey', 'before', []);
        return engine.sealer.newDataKey(operationId);
      },
    }),
    dataKeys: overriding(engine.dataKeys, { load: around(reached, 'dataKeys.load', (ids) => engine.dataKeys.load(ids)) }),
    dueWork: overriding(engine.dueWork, {
      take: async (room, hideMs) => {
        reached('dueWork.take', 'before', []);
        const rows = await engine.dueWork.take(room, hideMs);
        // An empty hand holds nothing that could be lost.
        if (rows.length > 0) reached('dueWork.take', 'after', []);
        return rows;
      },
      set: (changes) =>
        changes.length === 0 ? engine.dueWork.set(changes) : around(reached, 'dueWork.set', () => engine.dueWork.set(changes))(),
    }),
    checkpoints: overriding(engine.checkpoints, {
      advance: around(
        reached,
        'checkpoints.advance',
        (name: string, from: bigint, to: bigint) => engine.checkpoints.advance(name, from, to),
        (...[name]) => [name],
      ),
    }),
    derivedPool: decoratePool(engine.derivedPool, reached),
  };
}

function detailsOf({ events }: AppendRequest): readonly string[] {
  const types = events.map(({ event }) => event.type);
  // An intent and its first claim are one append: that is the point of the intent, the claim's own is one of the due work.
  return types.includes('OperationPlanned') ? ['OperationPlanned'] : types;
}

function decoratePool(pool: Engine['derivedPool'], reached: Reached): Engine['derivedPool'] {
  const query = async (...args: unknown[]) => {
    const run = () => (pool.query as (...args: unknown[]) => Promise<unknown>).apply(pool, args);
    if ((args[0] as { name?: string }).name !== VIEW_WRITE) return run();
    reached('view.write', 'before', []);
    const result = await run();
    reached('view.write', 'after', []);
    return result;
  };
  return overriding(pool, { query: query as typeof pool.query });
}

function decorateProvider(provider: ProviderAdapter, reached: Reached): ProviderAdapter {
  const lookUp = provider.lookUp?.bind(provider);
  return {
    call: around(reached, 'provider.call', (request) => provider.call(request)),
    ...(lookUp && { lookUp: around(reached, 'provider.lookUp', lookUp) }),
    close: () => provider.close(),
  };
}

/** The request has left: undici says so behind the write to the socket, and the kernel sends it also for a process that is gone. */
function watchRequests(reached: Reached): void {
  const methodOf = (message: unknown) => (message as { request: { method: string } }).request.method;
  subscribe('undici:request:bodySent', (message) => {
    if (methodOf(message) !== 'GET') setImmediate(() => reached('provider.call', 'during', []));
  });
  subscribe('undici:client:sendHeaders', (message) => {
    if (methodOf(message) === 'GET') setImmediate(() => reached('provider.lookUp', 'during', []));
  });
}

/** The same call, told before and after. */
export function around<A extends readonly unknown[], T>(
  reached: Reached,
  port: Port,
  inner: (...args: A) => Promise<T>,
  details?: (...args: NoInfer<A>) => readonly string[],
) {
  return async (...args: A): Promise<T> => {
    const named = details?.(...args) ?? [];
    reached(port, 'before', named);
    const result = await inner(...args);
    reached(port, 'after', named);
    return result;
  };
}

/** Runs a statement that is told before, while it is under way, and after. */
export async function throughout<T>(reached: Reached, port: Port, details: readonly string[], run: () => Promise<T>): Promise<T> {
  reached(port, 'before', details);
  const running = run();
  await Promise.race([running.catch(() => undefined), delay(UNDER_WAY_MS)]);
  reached(port, 'during', details);
  const result = await running;
  reached(port, 'after', details);
  return result;
}

/** The same object with other methods; everything else is its own, private members included. */
export function overriding<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get: (of, property) => {
      const own = Object.hasOwn(methods, property) ? methods[property as keyof T] : undefined;
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(of, property, of);
      return typeof value === 'function' ? (value.bind(of) as unknown) : value;
    },
  });
}

const REACHED = Symbol('Reached');

/** Sees the answers of the HTTP server go out. */
@Module({})
class AnswerModule {
  static with(reached: Reached): DynamicModule {
    return { module: AnswerModule, providers: [{ provide: REACHED, useValue: reached }] };
  }

  constructor(@Inject(HttpAdapterHost) host: HttpAdapterHost, @Inject(REACHED) reached: Reached) {
    const fastify = host.httpAdapter.getInstance<FastifyInstance>();
    fastify.addHook('onSend', async (request) => reached('http.answer', 'before', [request.method]));
    fastify.addHook('onResponse', async (request) => reached('http.answer', 'after', [request.method]));
  }
}
