import { Module, type BeforeApplicationShutdown, type DynamicModule, type OnApplicationBootstrap } from '@nestjs/common';
import { DUE_WORK, DueWorkProjection } from '#adapters/due-work/due-work-projection.js';
import type { Feed, OpenFeed } from '#adapters/feed/feed.js';
import type { Logger } from '#adapters/observability/logger.js';
import type { Metrics } from '#adapters/observability/metrics.js';
import type { Engine } from '#adapters/runtime/open-engine.js';
import type { Catalogue, ProviderAdapter } from '#domain';
import { Dispatcher } from './dispatcher.js';
import { createReport } from './report.js';

/** The part of the engine that a dispatcher needs. */
export type DispatcherEngine = Pick<Engine, 'log' | 'clock' | 'hashing' | 'sealer' | 'dataKeys' | 'dueWork'>;

export interface DispatcherDependencies {
  readonly engine: DispatcherEngine;
  readonly openFeed: OpenFeed;
  readonly catalogue: Catalogue;
  readonly providers: ReadonlyMap<string, ProviderAdapter>;
  readonly worker: string;
  readonly newId: () => string;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Most operations begin and end within this time; merged, they leave no due work behind. What is due at once is slowed by no more. */
const GATHER_MS = 25;
const BACKLOG_GAUGE_EVERY_MS = 5_000;

/** The dispatcher with the feed that keeps its due work. */
export class DispatcherService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly dispatcher: Dispatcher;
  readonly feed: Feed;
  private gauge: NodeJS.Timeout | undefined;

  constructor(private readonly dependencies: DispatcherDependencies) {
    const { engine, openFeed, catalogue, providers, worker, newId, metrics, logger } = dependencies;
    const { log, clock, hashing, sealer, dataKeys, dueWork } = engine;
    const report = createReport(metrics, logger);
    const ports = {
      log,
      clock,
      hashing,
      sealer,
      dataKeys,
      dueWork,
      catalogue,
      providers,
      worker,
      newId,
      monotonicMs: () => performance.now(),
      random: Math.random,
      report,
    };
    this.dispatcher = new Dispatcher(ports);
    const onDue = () => this.dispatcher.wake();
    const consumer = new DueWorkProjection(dueWork, log, () => clock.nowMs(), onDue);
    this.feed = openFeed({
      consumer,
      gatherMs: GATHER_MS,
      onError: (err) => logger.error({ err, consumer: DUE_WORK }, 'the feed stumbled and will try again'),
      onProgress: (position) => metrics.feedPosition.set({ consumer: DUE_WORK }, Number(position)),
      onParked: (operationId) => consumer.lookAt(operationId),
    });
  }

  onApplicationBootstrap(): void {
    this.feed.start();
    this.dispatcher.start();
    this.gauge = setInterval(() => void this.measure(), BACKLOG_GAUGE_EVERY_MS);
  }

  /** Takes no more work and finishes what is under way; the composing program bounds the wait. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.gauge);
    // Together: a broker's partitions go to another process while calls of this one still end.
    await Promise.all([this.dispatcher.stop(), this.feed.stop()]);
  }

  private async measure(): Promise<void> {
    const { engine, metrics, logger } = this.dependencies;
    try {
      metrics.dueWork.set(await engine.dueWork.countDue());
      const lag = await this.feed.lag();
      if (lag !== null) metrics.feedLagEvents.set({ consumer: DUE_WORK }, lag);
    } catch (err) {
      logger.warn({ err }, 'the backlog could not be measured');
    }
  }
}

@Module({})
export class DispatcherModule {
  static with(service: DispatcherService): DynamicModule {
    return { module: DispatcherModule, providers: [{ provide: DispatcherService, useValue: service }] };
  }
}
