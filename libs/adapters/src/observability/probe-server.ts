import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Metrics } from './metrics.js';
import type { ReadinessChecks } from './readiness.js';

/** A probe is one short request; whoever sends more slowly than this is none. */
const REQUEST_TIMEOUT_MS = 5_000;
/** Probes and a scraper; more are a mistake or an attack. */
const CONNECTIONS_MAX = 64;

export interface ProbeServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * `/livez`, `/readyz` (with `?verbose` each check) and `/metrics` for a process without an HTTP interface of its own. They need no key and
 * tell nothing of any operation.
 */
export async function startProbeServer(
  { host, port }: { readonly host: string; readonly port: number },
  readiness: ReadinessChecks,
  metrics: Metrics,
): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    answer(request, response, readiness, metrics).catch(() => response.writeHead(500).end());
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.maxConnections = CONNECTIONS_MAX;
  await listen(server, port, host);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { port: (server.address() as AddressInfo).port, close };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

async function answer(request: IncomingMessage, response: ServerResponse, readiness: ReadinessChecks, metrics: Metrics): Promise<void> {
  const [path, query = ''] = (request.url ?? '').split('?');
  const json = (status: number, body: object) =>
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
  if (request.method !== 'GET') return void json(405, { title: 'Only GET is served here.' });
  switch (path) {
    case '/livez':
      return void json(200, { status: 'live' });
    case '/readyz': {
      const { ready, checks } = await readiness.read();
      return void json(ready ? 200 : 503, { status: ready ? 'ready' : 'not_ready', ...(/^verbose\b/.test(query) && { checks }) });
    }
    case '/metrics':
      return void response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(await metrics.registry.metrics());
    default:
      return void json(404, { title: 'Served here: /livez, /readyz and /metrics.' });
  }
}
