import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import { ReadinessChecks } from '#adapters/observability/readiness.js';

/** For whoever runs the process; they need no key and tell nothing of any operation. */
@Controller()
export class ProbesController {
  constructor(
    @Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies,
    @Inject(ReadinessChecks) private readonly readiness: ReadinessChecks,
  ) {}

  /** The process answers; what it depends on is not asked, since a restart would not mend it. */
  @Get('livez')
  @RouteConfig({ access: 'open' })
  live(@Res() reply: FastifyReply): void {
    reply.send({ status: 'live' });
  }

  @Get('readyz')
  @RouteConfig({ access: 'open' })
  async ready(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { ready, checks } = await this.readiness.read();
    const verbose = 'verbose' in (request.query as object);
    reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not_ready', ...(verbose && { checks }) });
  }

  @Get('metrics')
  @RouteConfig({ access: 'open' })
  async metrics(@Res() reply: FastifyReply): Promise<void> {
    const { registry } = this.deps.metrics;
    reply.header('content-type', registry.contentType).send(await registry.metrics());
  }
}
