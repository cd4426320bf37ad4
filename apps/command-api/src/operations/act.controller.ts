import { Controller, Inject, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply } from 'fastify';
import { callerOf } from '../http/access.js';
import { expectedRevision } from '../http/etag.js';
import { clientKeyOf, traceparentOf } from '../http/request-headers.js';
import { ActOnOperationCommand, type Act } from './act-on-operation.js';
import { sendOperation } from './answers.js';
import { ReasonBody, ResolveBody } from './bodies.js';
import { OperationPresenter } from './operation-presenter.js';
import type { OperationRequest } from './read.controller.js';
import { validateBody } from './validate-body.js';

@Controller('v1/operations/:id')
export class ActController {
  constructor(
    @Inject(CommandBus) private readonly commands: CommandBus,
    @Inject(OperationPresenter) private readonly presenter: OperationPresenter,
  ) {}

  @Post('cancel')
  @RouteConfig({ access: 'cancel' })
  async cancel(@Req() request: OperationRequest, @Res() reply: FastifyReply): Promise<void> {
    const reason = reasonOf(request) ?? 'Cancelled on request.';
    await this.act(request, reply, 200, { type: 'CancelOperation', reason });
  }

  @Post('reconcile')
  @RouteConfig({ access: 'decide' })
  async reconcile(@Req() request: OperationRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.act(request, reply, 202, { type: 'RequestCheck', reason: reasonOf(request) });
  }

  /** A person's verdict. An `Idempotency-Key` names the decision, so that repeating it is recognised. */
  @Post('resolve')
  @RouteConfig({ access: 'decide' })
  async resolve(@Req() request: OperationRequest, @Res() reply: FastifyReply): Promise<void> {
    const body = validateBody(ResolveBody, request.body);
    await this.act(request, reply, 200, {
      type: 'DecideReview',
      decision: body.decision,
      decisionId: clientKeyOf(request),
      expectedRevision: expectedRevision(request.headers['if-match']),
      actor: callerOf(request).actor,
      reason: body.reason,
      evidence: body.evidence ?? null,
      providerOperationId: body.provider_operation_id ?? null,
    });
  }

  private async act(request: OperationRequest, reply: FastifyReply, status: number, act: Act): Promise<void> {
    const command = new ActOnOperationCommand(request.params.id, act, callerOf(request), traceparentOf(request));
    const operation = await this.commands.execute(command);
    sendOperation(reply, status, operation, await this.presenter.present(operation.state));
  }
}

/** The body may be left out. */
function reasonOf({ body }: OperationRequest): string | null {
  return body === undefined ? null : (validateBody(ReasonBody, body).reason ?? null);
}
