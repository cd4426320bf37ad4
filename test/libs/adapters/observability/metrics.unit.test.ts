import { describe, expect, it } from 'vitest';
import { createMetrics } from '#adapters/observability/metrics.js';

describe('the metrics', () => {
  it('are named after onefold, in base units, counters with _total', async () => {
    const { registry } = createMetrics({ nodeMetrics: false });
    const metrics = await registry.getMetricsAsJSON();
    expect(metrics.length).toBeGreaterThan(8);
    for (const { name, type, help } of metrics) {
      expect(name).toMatch(/^onefold_[a-z_]+$/);
      expect(name.endsWith('_total')).toBe(String(type) === 'counter');
      expect(name).not.toMatch(/_(ms|milliseconds|kb)$/);
      expect(help.endsWith('.')).toBe(true);
    }
  });

  it('know no tenant and no key', async () => {
    const { registry, ...named } = createMetrics({ nodeMetrics: false });
    const labels = Object.values(named).flatMap((metric) => (metric as unknown as { labelNames: string[] }).labelNames);
    expect(labels.filter((label) => /tenant|key|operation|payload/.test(label))).toEqual([]);
    expect(await registry.metrics()).toContain('onefold_due_work 0');
  });

  it('measure the process itself unless told not to', async () => {
    const { registry } = createMetrics();
    expect(await registry.metrics()).toContain('nodejs_eventloop_lag_seconds');
  });

  it('may be made more than once in a process', () => {
    expect(() => [createMetrics({ nodeMetrics: false }), createMetrics({ nodeMetrics: false })]).not.toThrow();
  });
});
