import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseStrictJson } from '#domain';
import { Problem } from '../problems/problem.js';

/** Reads bodies as strict JSON from their own bytes; every other content type is refused. An empty body is `undefined`. */
export function installJsonBody(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      done(null, readJson(request, body as Buffer));
    } catch (problem) {
      done(problem as Problem, undefined);
    }
  });
}

function readJson({ headers }: FastifyRequest, body: Buffer): unknown {
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers['content-type'] ?? '')?.[1];
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') throw new Problem('unsupported_media_type');
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') throw new Problem('unsupported_media_type');
  if (body.length === 0) return undefined;
  // Decoding would put U+FFFD in place of what it can't read, and two different bodies would become one.
  if (!isUtf8(body)) throw new Problem('invalid_utf8');
  const parsed = parseStrictJson(body.toString('utf8'));
  if (parsed.fault) {
    const { code, pointer, rule } = parsed.fault;
    throw new Problem(code, { errors: [{ pointer, code, rule }] });
  }
  return parsed.value;
}
