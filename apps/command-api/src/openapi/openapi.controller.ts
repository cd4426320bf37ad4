import { Controller, Get, Inject, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply } from 'fastify';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import { buildDocument } from './document.js';

/** The description of this API, for programs that make clients of it. It tells no more than the catalogue and the documentation do. */
@Controller()
export class OpenApiController {
  private readonly text: string;

  constructor(@Inject(DEPENDENCIES) { catalogue }: CommandApiDependencies) {
    this.text = JSON.stringify(buildDocument(catalogue));
  }

  @Get('openapi.json')
  @RouteConfig({ access: 'open' })
  read(@Res() reply: FastifyReply): void {
    reply.header('content-type', 'application/json; charset=utf-8').send(this.text);
  }
}
