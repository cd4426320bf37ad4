import {
  Inject,
  Injectable,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Logger } from '#adapters/observability/logger.js';
import type { Metrics } from '#adapters/observability/metrics.js';
import { Relay, type RelayOptions } from './relay.js';

export interface RelayDependencies extends RelayOptions {
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export const RELAY_DEPENDENCIES = Symbol('RelayDependencies');

const GAUGES_EVERY_MS = 1_000;

/** Publishes the log for as long as the application runs. */
@Injectable()
export class RelayService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly relay: Relay;
  private gauges: NodeJS.Timeout | undefined;

  constructor(@Inject(RELAY_DEPENDENCIES) private readonly dependencies: RelayDependencies) {
    this.relay = new Relay(dependencies);
  }

  onApplicationBootstrap(): void {
    this.relay.start();
    this.gauges = setInterval(() => this.setGauges(), GAUGES_EVERY_MS);
  }

  /** Finishes the page under way and gives the leadership back. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.gauges);
    await this.relay.stop();
    this.setGauges();
  }

  private setGauges(): void {
    const { metrics } = this.dependencies;
    const { isLeader, oldestUnpublishedSeconds } = this.relay.status();
    metrics.relayLeader.set(isLeader ? 1 : 0);
    metrics.relayOldestUnpublished.set(oldestUnpublishedSeconds);
  }
}

@Module({})
export class RelayModule {
  static with(dependencies: RelayDependencies): DynamicModule {
    return {
      module: RelayModule,
      providers: [{ provide: RELAY_DEPENDENCIES, useValue: dependencies }, RelayService],
    };
  }
}
