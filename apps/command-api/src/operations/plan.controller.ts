import { Controller, Inject, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import { callerOf } from '../http/access.js';
import { takeTokens } from '../http/gate.js';
import { waitPreference } from '../http/prefer.js';
import { RateLimiter } from '../http/rate-limiter.js';
import { clientKeyOf, traceparentOf } from '../http/request-headers.js';
import { Problem } from '../problems/problem.js';
import { problemOf } from '../problems/problem-of.js';
import { locationOf, planStatus, problemItem, sendOperation, type BatchItem } from './answers.js';
import { OperationPresenter } from './operation-presenter.js';
import { readIntent } from './plan-intent.js';
import { PlanOperationCommand, type PlanResult, type Wait } from './plan-operation.js';
import { SubmissionCounter } from './submission-counter.js';

/** All of them are planned at once; 100 appends are one write of the log. */
export const BATCH_ITEMS_MAX = 100;

@Controller('v1/operations')
export class PlanController {
  constructor(
    @Inject(DEPENDENCIES) private readonly deps: CommandApiDependencies,
    @Inject(CommandBus) private readonly commands: CommandBus,
    @Inject(OperationPresenter) private readonly presenter: OperationPresenter,
    @Inject(SubmissionCounter) private readonly counter: SubmissionCounter,
    @Inject(RateLimiter) private readonly limiter: RateLimiter | null,
  ) {}

  @Post()
  @RouteConfig({ access: 'submit' })
  async plan(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const waitSeconds = waitPreference(request.headers.prefer);
    const wait = waitSeconds === null ? null : { timeoutMs: waitSeconds * 1000, gone: goneSignal(reply) };
    const result = await this.submit(request, request.body, clientKeyOf(request), wait);
    const resource = await this.presenter.present(result.operation.state, undefined, result.dataKey);
    reply.header('location', locationOf(result.operation));
    if (result.replayed) reply.header('idempotent-replayed', 'true');
    if (result.waited) reply.header('preference-applied', `wait=${waitSeconds}`);
    sendOperation(reply, planStatus(result), result.operation, resource);
  }

  /** Each element stands for itself: one that is refused does not touch the others, and each names its own identity. */
  @Post('batch')
  @RouteConfig({ access: 'submit' })
  async planBatch(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const bodies = readBatch(request.body);
    if (this.limiter) takeTokens(this.limiter, callerOf(request), bodies.length - 1, reply);
    const items = await Promise.all(bodies.map((body) => this.planItem(request, body)));
    reply.code(207).send(items);
  }

  private async planItem(request: FastifyRequest, body: unknown): Promise<BatchItem> {
    try {
      const result = await this.submit(request, body, null, null);
      const headers = { location: locationOf(result.operation), ...(result.replayed && { 'idempotent-replayed': 'true' }) };
      return { status: planStatus(result), headers, body: await this.presenter.present(result.operation.state, undefined, result.dataKey) };
    } catch (error) {
      const problem = problemOf(error);
      if (problem.status >= 500) this.deps.logger.error({ err: error, code: problem.code, route: '/v1/operations/batch' }, 'item failed');
      return problemItem(problem);
    }
  }

  private async submit(request: FastifyRequest, body: unknown, clientKey: string | null, wait: Wait | null): Promise<PlanResult> {
    try {
      const intent = readIntent(this.deps.catalogue, body, clientKey);
      const command = new PlanOperationCommand(intent, callerOf(request), traceparentOf(request), wait);
      const result = await this.commands.execute(command);
      this.counter.accepted(result.replayed);
      return result;
    } catch (error) {
      this.counter.refused();
      throw error;
    }
  }
}

function readBatch(body: unknown): readonly unknown[] {
  if (body === undefined) throw new Problem('body_missing');
  if (Array.isArray(body) && body.length >= 1 && body.length <= BATCH_ITEMS_MAX) return body;
  const rule = `The body is an array of 1-${BATCH_ITEMS_MAX} requests, each as POST /v1/operations takes it.`;
  throw new Problem('request_invalid', { errors: [{ pointer: '', code: 'member_invalid', rule }] });
}

/** Aborted when the connection closes before the answer was sent. */
function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) gone.abort();
  });
  return gone.signal;
}
