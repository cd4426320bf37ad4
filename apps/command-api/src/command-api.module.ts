import { Inject, Module, type BeforeApplicationShutdown, type DynamicModule } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { DEPENDENCIES, type CommandApiDependencies } from './dependencies.js';
import { RateLimiter } from './http/rate-limiter.js';
import { OpenApiController } from './openapi/openapi.controller.js';
import { ActController } from './operations/act.controller.js';
import { ActOnOperationHandler } from './operations/act-on-operation.js';
import { ListOperationsHandler } from './operations/list-operations.js';
import { OperationPresenter } from './operations/operation-presenter.js';
import { OperationWatches } from './operations/operation-watches.js';
import { PlanController } from './operations/plan.controller.js';
import { PlanOperationHandler } from './operations/plan-operation.js';
import { ReadController } from './operations/read.controller.js';
import { ReadHistoryHandler, ReadOperationHandler } from './operations/read-operation.js';
import { SubmissionCounter } from './operations/submission-counter.js';
import { CapabilitiesController } from './system/capabilities.controller.js';
import { ProbesController } from './system/probes.controller.js';
import { ReadinessChecks } from '#adapters/observability/readiness.js';

@Module({})
export class CommandApiModule implements BeforeApplicationShutdown {
  static with(deps: CommandApiDependencies, beside: readonly DynamicModule[] = []): DynamicModule {
    const { limits, log, logger, readiness } = deps;
    return {
      module: CommandApiModule,
      imports: [CqrsModule.forRoot(), ...beside],
      controllers: [PlanController, ReadController, ActController, CapabilitiesController, ProbesController, OpenApiController],
      providers: [
        { provide: DEPENDENCIES, useValue: deps },
        {
          provide: RateLimiter,
          useValue: limits.rateLimitPerSecond > 0 ? new RateLimiter(limits.rateLimitPerSecond, () => performance.now()) : null,
        },
        { provide: OperationWatches, useFactory: () => new OperationWatches(log, logger) },
        { provide: ReadinessChecks, useFactory: () => new ReadinessChecks(readiness, logger, () => performance.now()) },
        OperationPresenter,
        SubmissionCounter,
        PlanOperationHandler,
        ActOnOperationHandler,
        ReadOperationHandler,
        ReadHistoryHandler,
        ListOperationsHandler,
      ],
    };
  }

  constructor(@Inject(OperationWatches) private readonly watches: OperationWatches) {}

  /** Before the server closes, which waits for open requests: those that only wait are answered now. */
  beforeApplicationShutdown(): void {
    this.watches.endAll();
  }
}
