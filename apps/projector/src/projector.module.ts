import {
  Inject,
  Injectable,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Feed, OpenFeed } from '#adapters/feed/feed.js';
import type { Logger } from '#adapters/observability/logger.js';
import type { Metrics } from '#adapters/observability/metrics.js';
import type { Pool } from '#adapters/postgres/database.js';
import { oldestUnknownAgeMs } from '#adapters/view/oldest-unknown.js';
import { OPERATION_VIEW, OperationProjection } from '#adapters/view/operation-projection.js';
import { streamOf, UnreadableEvent, type EventLog } from '#domain';

export interface ProjectorDependencies {
  /** Commits of this pool need not wait for the disk where the feed keeps its checkpoint in the same database. */
  readonly derivedPool: Pool;
  readonly log: EventLog;
  readonly openFeed: OpenFeed;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export const PROJECTOR_DEPENDENCIES = Symbol('ProjectorDependencies');

/**
 * Most operations begin and end within this time, and then cost the view one write in place of two: about half. Lists may lag behind by it,
 * which people do not notice; whoever needs the newest state of one operation reads its stream.
 */
const GATHER_MS = 100;
const GAUGE_EVERY_MS = 5_000;

/** Feeds the log into the status view for as long as the application runs. */
@Injectable()
export class ProjectorService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly feed: Feed;
  private gauge: NodeJS.Timeout | undefined;

  constructor(@Inject(PROJECTOR_DEPENDENCIES) private readonly dependencies: ProjectorDependencies) {
    const { log, derivedPool, openFeed, metrics, logger } = dependencies;
    const projection = new OperationProjection(derivedPool, log);
    this.feed = openFeed({
      consumer: projection,
      gatherMs: GATHER_MS,
      onError: (err) => logger.error({ err, consumer: OPERATION_VIEW }, 'the feed stumbled and will try again'),
      onProgress: (position) => metrics.feedPosition.set({ consumer: OPERATION_VIEW }, Number(position)),
      onParked: (operationId) => this.foldAnew(projection, operationId),
    });
  }

  onApplicationBootstrap(): void {
    this.feed.start();
    this.gauge = setInterval(() => void this.measure(), GAUGE_EVERY_MS);
  }

  /** Finishes the batch under way. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.gauge);
    await this.feed.stop();
  }

  /** Whatever the record said, the log tells. A stream that can't be read can't be folded: its row stays, and holds up no other. */
  private async foldAnew(projection: OperationProjection, operationId: string): Promise<void> {
    const { log, logger } = this.dependencies;
    try {
      await projection.handle(await log.readStream(streamOf(operationId)));
    } catch (err) {
      if (!(err instanceof UnreadableEvent)) throw err;
      logger.error({ err, operation_id: operationId }, 'the stream of a parked record can not be read');
    }
  }

  private async measure(): Promise<void> {
    const { metrics, derivedPool, logger } = this.dependencies;
    try {
      metrics.oldestUnknown.set((await oldestUnknownAgeMs(derivedPool)) / 1_000);
      const lag = await this.feed.lag();
      if (lag !== null) metrics.feedLagEvents.set({ consumer: OPERATION_VIEW }, lag);
    } catch (err) {
      logger.warn({ err, consumer: OPERATION_VIEW }, 'lag and age of the status view could not be measured');
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
