import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import { QueryBus } from '@nestjs/cqrs';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import { callerOf } from '../http/access.js';
import { etagOf, matchesNone } from '../http/etag.js';
import { sendOperation, type ParkedRecordResource } from './answers.js';
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
    @Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies,
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
    const [resource, parked] = await Promise.all([this.presenter.present(operation.state), this.parkedOf(request.params.id)]);
    sendOperation(reply, 200, operation, parked.length === 0 ? resource : { ...resource, parked_records: parked });
  }

  /** What a consumer could not take of the operation: lists may be behind, and somebody should look. */
  private async parkedOf(operationId: string): Promise<ParkedRecordResource[]> {
    const records = (await this.deps.parked?.forOperation(operationId)) ?? [];
    return records.map(({ consumer, topic, partition, offset, reason, parkedAtMs }) => ({
      consumer,
      topic,
      partition,
      offset: String(offset),
      reason,
      parked_at: new Date(parkedAtMs).toISOString(),
    }));
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
