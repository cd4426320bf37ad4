import 'reflect-metadata';
import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { CommandApiModule } from './command-api.module.js';
import type { CommandApiDependencies } from './dependencies.js';
import { ApiKeyRing } from './http/api-keys.js';
import { installGate } from './http/gate.js';
import { installJsonBody } from './http/json-body.js';
import { RateLimiter } from './http/rate-limiter.js';
import { installRequestMetrics } from './http/request-metrics.js';
import { recordRoutes } from './http/route-table.js';
import { limitConnections, serverOptions, watchAnswers } from './http/server-options.js';
import { ProblemFilter } from './problems/problem.filter.js';
import { NestLogger } from './system/nest-logger.js';

export type { CommandApiDependencies } from './dependencies.js';
export type { ApiKey } from './http/api-keys.js';

/**
 * The command API, ready for `listen(port, host)` or `inject`. It installs no signal handlers: whoever composes the process decides the
 * order in which its parts stop, and calls `close()`, which answers waiting requests, then stops listening, then waits for open ones.
 * @param beside modules of other parts that live in the same process
 */
export async function createCommandApi(
  deps: CommandApiDependencies,
  beside: readonly DynamicModule[] = [],
): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter(serverOptions());
  const app = await NestFactory.create<NestFastifyApplication>(CommandApiModule.with(deps, beside), adapter, {
    logger: new NestLogger(deps.logger),
    bodyParser: false,
    abortOnError: false,
  });
  const fastify = adapter.getInstance();
  limitConnections(fastify.server);
  watchAnswers(fastify.server);
  const routes = recordRoutes(fastify);
  installRequestMetrics(fastify, deps.metrics);
  installGate(fastify, new ApiKeyRing(deps.apiKeys, deps.apiKeyPepper, deps.hashing), app.get<RateLimiter | null>(RateLimiter));
  installJsonBody(fastify);
  app.useGlobalFilters(new ProblemFilter(deps.logger, deps.newId, routes));
  await app.init();
  await fastify.ready();
  return app;
}
