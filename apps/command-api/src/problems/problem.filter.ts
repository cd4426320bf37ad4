import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '#adapters/observability/logger.js';
import type { RouteTable } from '../http/route-table.js';
import { Problem } from './problem.js';
import { problemOf } from './problem-of.js';

/** Every error of the app ends here, also those of Fastify and its hooks: one shape, no stack trace, nothing of the request in a log. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(
    private readonly logger: Logger,
    private readonly newId: () => string,
    private readonly routes: RouteTable,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    if (reply.sent) {
      this.logger.error({ err: error, route: routeOf(request), method: request.method }, 'failed after the answer was sent');
      return;
    }
    const problem = problemOf(error);
    if (problem.code === 'route_not_found') return void sendProblem(reply, this.unmatched(request));
    if (problem.status < 500) return void sendProblem(reply, problem);
    const request_id = this.newId();
    const fields = { err: error, code: problem.code, request_id, route: routeOf(request), method: request.method };
    if (problem.code === 'internal_error') this.logger.error(fields, 'request failed');
    else this.logger.warn(fields, 'request not served');
    sendProblem(reply, problem, { request_id });
  }

  /** Without a route there is either no such path, or not with this method. */
  private unmatched(request: FastifyRequest): Problem {
    const allowed = this.routes.methodsOf(request.url);
    return allowed.length === 0
      ? new Problem('route_not_found')
      : new Problem('method_not_allowed', { headers: { allow: allowed.join(', ') } });
  }
}

export function sendProblem(reply: FastifyReply, problem: Problem, members: Readonly<Record<string, unknown>> = {}): FastifyReply {
  // As bytes, since Fastify puts a charset behind the type of a text; this media type has none (RFC 9457 section 6.1).
  const body = Buffer.from(JSON.stringify({ ...problem.body(), ...members }));
  return reply
    .code(problem.status)
    .headers({ ...problem.headers, 'content-type': 'application/problem+json' })
    .send(body);
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions?.url ?? 'unmatched';
}
