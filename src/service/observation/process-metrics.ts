import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';

const nanoseconds = 1e9;
const microseconds = 1e6;

/** Registers what the process says of itself, by the names that Prometheus clients use. */
export function registerProcessMetrics(metrics: Metrics): void {
  const startedAt = Date.now() / 1000 - process.uptime();
  metrics.gauge({
    name: 'process_start_time_seconds',
    help: 'Start of the process, seconds since the epoch.',
    aggregate: 'max',
    read: () => startedAt,
  });
  metrics.gauge({
    name: 'process_cpu_seconds_total',
    help: 'CPU time, user and system.',
    type: 'counter',
    aggregate: 'sum',
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / microseconds;
    },
  });
  metrics.gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory.',
    aggregate: 'sum',
    read: () => process.memoryUsage.rss(),
  });
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  metrics.gauge({
    name: 'nodejs_eventloop_lag_p99_seconds',
    help: 'Delay of the event loop since the last reading, 99th percentile.',
    aggregate: 'max',
    read: () => {
      const p99 = delay.percentile(99);
      delay.reset();
      return Number.isFinite(p99) ? p99 / nanoseconds : 0;
    },
  });
}
