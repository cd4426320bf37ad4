import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import { QueryBus } from '@nestjs/cqrs';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from '../http/access.js';
import { etagOf, matchesNone } from '../http/etag.js';
import { sendOperation } from './answers.js';
import { ListOperationsQuery } from './list-operations.js';
import { OperationPresenter } from './operation-presenter.js';
import { readAt, readListQuery } from './query-parameters.js';
import { ReadHistoryQuery, ReadOperationQuery } from './read-operation.js';

export type OperationRequest = FastifyRequest<{ Params: { readonly id: string } }>;

@Controller('v1/operations')
export class ReadController {
  constructor(
    @Inject(QueryBus) private readonly queries: QueryBus,
    @Inject(OperationPresenter) private readonly presenter: OperationPresenter,
  ) {}

  @Get()
  @RouteConfig({ access: 'read' })
  async list(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const page = await this.queries.execute(new ListOperationsQuery(readListQuery(callerOf(request).tenant, request.query)));
    const { nextCursor } = page;
    if (nextCursor !== null) reply.header('link', `<${nextUrl(request, nextCursor)}>; rel="next"`);
    const operations = await this.presenter.presentAll(page.operations);
    reply.send({ operations, next_cursor: nextCursor, has_more: nextCursor !== null });
  }

  @Get(':id')
  @RouteConfig({ access: 'read' })
  async read(@Req() request: OperationRequest, @Res() reply: FastifyReply): Promise<void> {
    const operation = await this.queries.execute(new ReadOperationQuery(request.params.id, callerOf(request)));
    const { revision } = operation.state;
    if (matchesNone(request.headers['if-none-match'], revision)) {
      reply.code(304).header('etag', etagOf(revision)).send();
      return;
    }
    sendOperation(reply, 200, operation, await this.presenter.present(operation.state));
  }

  @Get(':id/events')
  @RouteConfig({ access: 'read' })
  async history(@Req() request: OperationRequest, @Res() reply: FastifyReply): Promise<void> {
    const query = new ReadHistoryQuery(request.params.id, callerOf(request), readAt(request.query));
    reply.send(await this.queries.execute(query));
  }
}

/** The same request, from the next page on (RFC 8288). */
function nextUrl(request: FastifyRequest, cursor: string): string {
  const parameters = new URLSearchParams(request.query as Record<string, string>);
  parameters.set('cursor', cursor);
  return `/v1/operations?${parameters.toString()}`;
}
