import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../problems/problem.js';
import { mayAccess, rolesFor, type Caller } from './access.js';
import type { ApiKeyRing } from './api-keys.js';
import { checkHeaderLines } from './header-lines.js';
import type { RateLimiter } from './rate-limiter.js';

/** Named as in draft-ietf-httpapi-ratelimit-headers-11; one policy, over all calls of a tenant. */
const POLICY = '"tenant"';

/**
 * Stands before every route, and before a byte of the body is read: who it is, whether they may, and whether it is not too often. What is
 * refused here has touched nothing.
 */
export function installGate(fastify: FastifyInstance, keys: ApiKeyRing, limiter: RateLimiter | null): void {
  fastify.decorateRequest('caller', null);
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff');
    try {
      checkHeaderLines(request.raw);
      const { access } = request.routeOptions.config;
      if (request.is404 || access === 'open') return done();
      const caller = authenticate(keys, request);
      if (!access || !mayAccess(caller.role, access)) throw roleNotAllowed(access ? rolesFor(access) : []);
      request.caller = caller;
      if (limiter) takeTokens(limiter, caller, 1, reply);
    } catch (problem) {
      return done(problem as Problem);
    }
    done();
  });
}

/** @throws Problem rate_limited */
export function takeTokens(limiter: RateLimiter, { tenant }: Caller, cost: number, reply: FastifyReply): void {
  const { allowed, remaining, retryAfterSeconds } = limiter.take(tenant, cost);
  reply
    .header('ratelimit-policy', `${POLICY};q=${limiter.perSecond};w=1`)
    .header('ratelimit', `${POLICY};r=${remaining};t=${Math.max(1, retryAfterSeconds)}`);
  if (!allowed) throw new Problem('rate_limited', { headers: { 'retry-after': String(retryAfterSeconds) } });
}

function authenticate(keys: ApiKeyRing, request: FastifyRequest): Caller {
  const { authorization } = request.headers;
  if (authorization === undefined) {
    throw new Problem('authentication_required', { headers: { 'www-authenticate': 'Bearer realm="onefold"' } });
  }
  const caller = keys.find(authorization);
  if (caller) return caller;
  throw new Problem('authentication_invalid', { headers: { 'www-authenticate': 'Bearer realm="onefold", error="invalid_token"' } });
}

function roleNotAllowed(roles: readonly string[]): Problem {
  return new Problem('role_not_allowed', { detail: `This call is for keys of these roles: ${roles.join(', ') || 'none'}.` });
}
