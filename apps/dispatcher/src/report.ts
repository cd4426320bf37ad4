import type { Logger } from '#adapters/observability/logger.js';
import type { Metrics } from '#adapters/observability/metrics.js';
import type { DispatcherReport } from './ports.js';

export function createReport(metrics: Metrics, logger: Logger): DispatcherReport {
  return {
    attempt(provider, outcome, durationMs) {
      metrics.attempts.inc({ provider, outcome });
      metrics.attemptDuration.observe({ provider }, durationMs / 1000);
    },
    lookUp: (provider, verdict) => metrics.lookups.inc({ provider, verdict }),
    fault: (what, operationId, err) =>
      logger.error({ err, ...(operationId !== null && { operation_id: operationId }) }, `fault while ${what}`),
  };
}
