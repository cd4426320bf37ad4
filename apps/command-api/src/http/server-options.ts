import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import type { ProblemCode } from '../problems/catalogue.js';
import { Problem } from '../problems/problem.js';
import { problemOf } from '../problems/problem-of.js';
import { sendProblem } from '../problems/problem.filter.js';

/** A payload is what one action needs to know, not a document; a batch of 100 ordinary ones fits. */
export const BODY_LIMIT_BYTES = 256 * 1024;
/** A key, a trace and a proxy's additions fit in a quarter of it. */
const HEADERS_LIMIT_BYTES = 16 * 1024;
export const HEADERS_MAX = 100;
/** Sockets are cheap, but each may hold a body in memory: 4,000 of them at the limit are 1 GiB. */
const CONNECTIONS_MAX = 4_000;
/** A client that sends slowly must not hold a connection: headers first, then the rest. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Silence on a socket: above the longest wait of 25 s. */
const IDLE_SOCKET_TIMEOUT_MS = 60_000;
/** Above the 60 s after which load balancers commonly drop idle connections, so that the proxy and not we close first. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** How often Node looks for slow clients; a time-out is late by as much. */
const TIMEOUT_CHECK_MS = 5_000;

export function serverOptions(): FastifyServerOptions & { readonly http: object } {
  return {
    logger: false,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: IDLE_SOCKET_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    // While closing, requests on open connections are still served, with `Connection: close`: the log is closed only afterwards.
    return503OnClosing: false,
    http: {
      maxHeaderSize: HEADERS_LIMIT_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // The gate refuses what has no host: as every other refusal, and not with an empty answer.
      requireHostHeader: false,
    },
    frameworkErrors: (error: Error, _request: FastifyRequest, reply: FastifyReply) => {
      sendProblem(reply.header('x-content-type-options', 'nosniff'), problemOf(error));
    },
    clientErrorHandler: answerUnreadable,
  };
}

/** Limits that Node takes on the server and not as options. */
export function limitConnections(server: Pick<Server, 'maxHeadersCount' | 'maxConnections'>): void {
  // Node drops in silence what exceeds its own limit: with room for one more, the gate can see that there are too many.
  server.maxHeadersCount = HEADERS_MAX + 1;
  server.maxConnections = CONNECTIONS_MAX;
}

/** Answers under way on each connection, oldest first. */
const underWay = new WeakMap<Socket, ServerResponse[]>();

/** Remembers what is being answered, for `answerUnreadable`. */
export function watchAnswers(server: Pick<Server, 'on'>): void {
  server.on('request', ({ socket }, response) => {
    const answers = underWay.get(socket) ?? [];
    while (answers[0]?.writableEnded) answers.shift();
    answers.push(response);
    underWay.set(socket, answers);
  });
}

/** Whether a request that was read whole has no answer yet: it may be recorded already. */
function isOwedAnAnswer(socket: Socket): boolean {
  return (underWay.get(socket) ?? []).some(({ writableEnded, req }) => !writableEnded && req.complete);
}

const UNREADABLE: Readonly<Record<string, { code: ProblemCode; line: string }>> = {
  HPE_HEADER_OVERFLOW: { code: 'headers_too_large', line: '431 Request Header Fields Too Large' },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'request_timeout', line: '408 Request Timeout' },
};

/**
 * What can't be read as HTTP has no request to answer: the bytes are written to the socket. Behind a request that is still being served
 * nothing may be said: its client would take the 400 for its own and an intent that is recorded for one that is not. Cut off, it asks again.
 */
function answerUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isOwedAnAnswer(socket)) {
    socket.destroy();
    return;
  }
  const { code, line } = UNREADABLE[error.code ?? ''] ?? { code: 'malformed_request', line: '400 Bad Request' };
  const body = JSON.stringify(new Problem(code).body());
  const head = ['content-type: application/problem+json', `content-length: ${Buffer.byteLength(body)}`, 'connection: close'];
  socket.end(`HTTP/1.1 ${line}\r\n${head.join('\r\n')}\r\n\r\n${body}`);
}
