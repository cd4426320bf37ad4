import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Everything that a process may count, declared in this one place. No label names a tenant or a key, and each has few values. */
export interface Metrics {
  readonly registry: Registry;
  readonly httpRequests: Counter<'route' | 'method' | 'status'>;
  readonly httpRequestDuration: Histogram<'route' | 'method'>;
  /** `result`: planned, replayed, refused. */
  readonly operations: Counter<'result'>;
  /** `outcome`: the kinds of an attempt's outcome. */
  readonly attempts: Counter<'provider' | 'outcome'>;
  readonly attemptDuration: Histogram<'provider'>;
  /** `verdict`: present, absent, refused, inconclusive. */
  readonly lookups: Counter<'provider' | 'verdict'>;
  readonly reviewsOpened: Counter<'reason'>;
  /** Position of the last event that a reader of the feed has finished. */
  readonly feedPosition: Gauge<'consumer'>;
  readonly feedLagEvents: Gauge<'consumer'>;
  /** Operations that are due and not yet taken. */
  readonly dueWork: Gauge;
  readonly oldestUnknown: Gauge;
  /** 1 in the process that publishes the log, 0 in its standbys. */
  readonly relayLeader: Gauge;
  readonly relayPublished: Counter;
  readonly relayPosition: Gauge;
  readonly relayOldestUnpublished: Gauge;
  /** `reason`: the stable codes of a record or event that could not be taken. */
  readonly parkedRecords: Counter<'consumer' | 'reason'>;
}

/** From a cached read to the longest wait of 25 s. */
const HTTP_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** A provider answers between milliseconds and its time-out. */
const ATTEMPT_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** @param nodeMetrics whether the Node.js process itself is measured too (memory, event loop, garbage collection); off in most tests */
export function createMetrics({ nodeMetrics = true }: { readonly nodeMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (nodeMetrics) collectDefaultMetrics({ register: registry });
  return {
    registry,
    httpRequests: new Counter({
      name: 'onefold_http_requests_total',
      help: 'HTTP requests answered.',
      labelNames: ['route', 'method', 'status'],
      registers,
    }),
    httpRequestDuration: new Histogram({
      name: 'onefold_http_request_duration_seconds',
      help: 'Time from the first byte of a request to the last of its answer, waits that were asked for included.',
      labelNames: ['route', 'method'],
      buckets: HTTP_BUCKETS_SECONDS,
      registers,
    }),
    operations: new Counter({
      name: 'onefold_operations_total',
      help: 'Submitted operations: planned, replayed from an earlier submission, or refused.',
      labelNames: ['result'],
      registers,
    }),
    attempts: new Counter({
      name: 'onefold_attempts_total',
      help: 'Attempts by what is known of them after the call.',
      labelNames: ['provider', 'outcome'],
      registers,
    }),
    attemptDuration: new Histogram({
      name: 'onefold_attempt_duration_seconds',
      help: 'Time that a provider took to answer an attempt, or to be given up on.',
      labelNames: ['provider'],
      buckets: ATTEMPT_BUCKETS_SECONDS,
      registers,
    }),
    lookups: new Counter({
      name: 'onefold_lookups_total',
      help: 'Look-ups by verdict.',
      labelNames: ['provider', 'verdict'],
      registers,
    }),
    reviewsOpened: new Counter({
      name: 'onefold_reviews_opened_total',
      help: 'Reviews opened for a person.',
      labelNames: ['reason'],
      registers,
    }),
    feedPosition: new Gauge({
      name: 'onefold_feed_position',
      help: 'Position of the last event that a consumer has finished.',
      labelNames: ['consumer'],
      registers,
    }),
    feedLagEvents: new Gauge({
      name: 'onefold_feed_lag_events',
      help: 'Events in the log that a consumer has not finished.',
      labelNames: ['consumer'],
      registers,
    }),
    dueWork: new Gauge({ name: 'onefold_due_work', help: 'Operations that are due and not yet taken.', registers }),
    oldestUnknown: new Gauge({
      name: 'onefold_oldest_unknown_seconds',
      help: 'Age of the oldest operation whose outcome is unknown, from when it was planned, by the clock of the database; 0 where there is none.',
      registers,
    }),
    relayLeader: new Gauge({ name: 'onefold_relay_leader', help: '1 where this process publishes the log, 0 on a standby.', registers }),
    relayPublished: new Counter({
      name: 'onefold_relay_published_total',
      help: 'Events published by this process, those that were sent again included.',
      registers,
    }),
    relayPosition: new Gauge({
      name: 'onefold_relay_position',
      help: 'Position of the last event that is known to be published.',
      registers,
    }),
    relayOldestUnpublished: new Gauge({
      name: 'onefold_relay_oldest_unpublished_seconds',
      help: 'Age of the oldest event that is not published yet, by the clock of the database; 0 where there is none, and on a standby.',
      registers,
    }),
    parkedRecords: new Counter({
      name: 'onefold_parked_records_total',
      help: 'Records and events that a consumer, or the relay, could not take and has set aside.',
      labelNames: ['consumer', 'reason'],
      registers,
    }),
  };
}
