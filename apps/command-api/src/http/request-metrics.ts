import type { Counter, Histogram } from 'prom-client';
import type { FastifyInstance } from 'fastify';
import type { Metrics } from '#adapters/observability/metrics.js';

/** Stands for whatever matched no route, so that made-up paths and methods make no new series. */
const UNMATCHED = 'unmatched';

/** Counts and times each answer by route, method and status. The label sets are looked up once for each, not once for each request. */
export function installRequestMetrics(fastify: FastifyInstance, { httpRequests, httpRequestDuration }: Metrics): void {
  const counters = new Map<string, Counter.Internal>();
  const durations = new Map<string, Histogram.Internal<string>>();
  fastify.addHook('onResponse', (request, reply, done) => {
    const matched = !request.is404 && request.routeOptions.url !== undefined;
    const route = matched ? request.routeOptions.url! : UNMATCHED;
    const method = matched ? request.method : UNMATCHED;
    const status = String(reply.statusCode);
    const name = `${method} ${route}`;
    const counted = `${name} ${status}`;
    let counter = counters.get(counted);
    if (!counter) counters.set(counted, (counter = httpRequests.labels({ route, method, status })));
    let duration = durations.get(name);
    if (!duration) durations.set(name, (duration = httpRequestDuration.labels({ route, method })));
    counter.inc();
    duration.observe(reply.elapsedTime / 1000);
    done();
  });
}
