import { readdirSync, readFileSync } from 'node:fs';
import { constants, monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';

const nanoseconds = 1e9;
const microseconds = 1e6;
const milliseconds = 1e3;

/** Milliseconds between two samples of the event loop. An idle loop is sampled as late, so they are subtracted. */
const lagResolution = 20;
/** Milliseconds of one part of the window of the lag, and number of parts. */
const lagPart = 10_000;
const lagParts = 6;

export function registerProcessMetrics(metrics: Metrics): void {
  const startedAt = Date.now() / 1000 - process.uptime();
  const cpuSeconds = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / microseconds;
  };
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
    read: cpuSeconds,
  });
  metrics.gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of all processes of the service.',
    read: () => process.memoryUsage.rss(),
  });
  metrics.gauge({
    name: 'process_max_fds',
    help: 'Limit of open file descriptors, of the process with the lowest one.',
    aggregate: 'min',
    read: readDescriptorLimit,
  });
  metrics.gauge({ name: 'process_open_fds', help: 'Open file descriptors.', read: countDescriptors });
  metrics.gauge({
    name: 'nodejs_heap_size_used_bytes',
    help: 'Used heap.',
    read: () => process.memoryUsage().heapUsed,
  });
  registerCollections(metrics);
  registerLag(metrics);
}

export function readDescriptorLimit(): number | undefined {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}

function countDescriptors(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return undefined;
  }
}

function registerCollections(metrics: Metrics): void {
  const seconds = metrics.counter('nodejs_gc_seconds_total', 'Time spent in garbage collection, by kind.');
  const kinds = new Map([
    [constants.NODE_PERFORMANCE_GC_MINOR, seconds.series('{kind="minor"}')],
    [constants.NODE_PERFORMANCE_GC_MAJOR, seconds.series('{kind="major"}')],
    [constants.NODE_PERFORMANCE_GC_INCREMENTAL, seconds.series('{kind="incremental"}')],
  ]);
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail } = entry as PerformanceEntry & { readonly detail: { readonly kind: number } }; // an entry of `gc` has it
      const series = kinds.get(detail.kind);
      if (series !== undefined) series.value += entry.duration / milliseconds;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
}

/** Each part of the window has its own percentile, so that a read does not reset the window of another reader. */
function registerLag(metrics: Metrics): void {
  const delay = monitorEventLoopDelay({ resolution: lagResolution });
  delay.enable();
  const readPart = (): number => {
    const p99 = delay.percentile(99) / nanoseconds - lagResolution / milliseconds;
    return Number.isFinite(p99) ? Math.max(0, p99) : 0;
  };
  const parts: number[] = [];
  setInterval(() => {
    parts.push(readPart());
    if (parts.length > lagParts) parts.shift();
    delay.reset();
  }, lagPart).unref();
  metrics.gauge({
    name: 'nodejs_eventloop_lag_p99_seconds',
    help: 'Delay of the event loop in the last minute, 99th percentile.',
    aggregate: 'max',
    read: () => Math.max(readPart(), ...parts),
  });
}
