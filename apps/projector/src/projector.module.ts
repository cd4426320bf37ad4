import {
  Inject,
  Injectable,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { DirectFeed } from '#adapters/feed/direct-feed.js';
import type { Logger } from '#adapters/observability/logger.js';
import type { Metrics } from '#adapters/observability/metrics.js';
import type { Engine } from '#adapters/runtime/open-engine.js';
import { OPERATION_VIEW, OperationProjection } from '#adapters/view/operation-projection.js';

/** The part of the engine that a projector needs: no key, no secret, no provider. */
export type ProjectorEngine = Pick<Engine, 'log' | 'derivedPool' | 'checkpoints'>;

export interface ProjectorDependencies {
  readonly engine: ProjectorEngine;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export const PROJECTOR_DEPENDENCIES = Symbol('ProjectorDependencies');

/**
 * Most operations begin and end within this time, and then cost the view one write in place of two: about half. Lists may lag behind by it,
 * which people do not notice; whoever needs the newest state of one operation reads its stream.
 */
const GATHER_MS = 100;
const LAG_GAUGE_EVERY_MS = 5_000;

/** Feeds the log into the status view for as long as the application runs. */
@Injectable()
export class ProjectorService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly feed: DirectFeed;
  private position: bigint | null = null;
  private gauge: NodeJS.Timeout | undefined;

  constructor(@Inject(PROJECTOR_DEPENDENCIES) private readonly dependencies: ProjectorDependencies) {
    const { engine, metrics, logger } = dependencies;
    const { log, derivedPool, checkpoints } = engine;
    this.feed = new DirectFeed({
      log,
      checkpoints,
      consumer: new OperationProjection(derivedPool, log),
      gatherMs: GATHER_MS,
      onError: (err) => logger.error({ err, consumer: OPERATION_VIEW }, 'the feed stumbled and will try again'),
      onProgress: (position) => {
        this.position = position;
        metrics.feedPosition.set({ consumer: OPERATION_VIEW }, Number(position));
      },
    });
  }

  onApplicationBootstrap(): void {
    this.feed.start();
    this.gauge = setInterval(() => void this.measureLag(), LAG_GAUGE_EVERY_MS);
  }

  /** Finishes the batch under way. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.gauge);
    await this.feed.stop();
  }

  private async measureLag(): Promise<void> {
    const { engine, metrics, logger } = this.dependencies;
    try {
      const position = this.position ?? (await engine.checkpoints.load(OPERATION_VIEW));
      metrics.feedLagEvents.set({ consumer: OPERATION_VIEW }, Math.max(0, Number((await engine.log.head()) - position)));
    } catch (err) {
      logger.warn({ err, consumer: OPERATION_VIEW }, 'the lag of the status view could not be measured');
    }
  }
}

@Module({})
export class ProjectorModule {
  static with(dependencies: ProjectorDependencies): DynamicModule {
    return {
      module: ProjectorModule,
      providers: [{ provide: PROJECTOR_DEPENDENCIES, useValue: dependencies }, ProjectorService],
    };
  }
}
