import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { attempt } from '../../core/attempt.ts';
import { packageFolder } from '../../core/package-folder.ts';
import type { ResourceServer } from '../../core/resource-server/resource-server.ts';
import type { TokenCacheStatus } from '../../core/token/token-cache.ts';
import { version } from '../../core/version.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

const nanoseconds = 1e9;
const microseconds = 1e6;
const milliseconds = 1e3;

/** Milliseconds between two samples of the event loop. An idle loop is sampled as late, so they are subtracted. */
const lagResolution = 20;
/** Milliseconds of one part of the window of the lag, and number of parts. */
const lagPart = 10_000;
const lagParts = 6;

const gauges: readonly Parameters<Metrics['gauge']>[] = [
  ['process_start_time_seconds', 'Start of the process, seconds since the epoch.', () => startedAt],
  ['process_cpu_seconds_total', 'CPU time, user and system.', readCpuSeconds],
  ['process_resident_memory_bytes', 'Resident memory of all processes of the service.', process.memoryUsage.rss],
  ['process_max_fds', 'Limit of open file descriptors, of the process with the lowest one.', readDescriptorLimit],
  ['process_open_fds', 'Open file descriptors.', () => attempt(() => readdirSync('/proc/self/fd').length)],
  ['nodejs_heap_size_used_bytes', 'Used heap.', () => process.memoryUsage().heapUsed],
];

/** Registers the metrics of the process. Returns the function that ends their measurements. */
export function registerProcessMetrics(metrics: Metrics): () => void {
  for (const gauge of gauges) metrics.gauge(...gauge);
  const ends = [registerCollections(metrics), registerLag(metrics)];
  return () => {
    for (const end of ends) end();
  };
}

export function registerServiceMetrics(metrics: Metrics, log: Log): void {
  // The build has written it (`tools/scripts/bundle.js`).
  const commit = attempt(() => readFileSync(join(packageFolder, 'dist/commit'), 'utf8'))?.trim() ?? '';
  const series = { [`{version="${version}",commit="${commit}"}`]: 1 };
  const help = 'Always 1; the labels are the version and the commit of the build.';
  metrics.gauge('portcullis_build_info', help, () => series);
  const dropped = 'Log lines that were lost because their reader was too slow or closed.';
  metrics.gauge('portcullis_log_lines_dropped_total', dropped, log.countDropped);
}

const cacheFigures: readonly [figure: keyof TokenCacheStatus, name: string, help: string][] = [
  ['entries', 'entries', 'Verified tokens that are cached.'],
  ['bytes', 'bytes', 'Estimated size of the cached tokens.'],
  ['hits', 'hits_total', 'Tokens that had been verified before.'],
  ['misses', 'misses_total', 'Tokens that had to be verified.'],
];

export function registerCacheMetrics(metrics: Metrics, server: Pick<ResourceServer, 'tokenCacheStatus'>): void {
  for (const [figure, name, help] of cacheFigures) {
    metrics.gauge(`portcullis_token_cache_${name}`, help, () => server.tokenCacheStatus()?.[figure]);
  }
}

const startedAt = Date.now() / 1000 - process.uptime();

function readCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / microseconds;
}

export function readDescriptorLimit(): number | undefined {
  const limits = attempt(() => readFileSync('/proc/self/limits', 'latin1')) ?? '';
  const [, limit] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return limit === undefined ? undefined : Number(limit);
}

function registerCollections(metrics: Metrics): () => void {
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
  return () => observer.disconnect();
}

/** Each part of the window has its own percentile, so that a read does not reset the window of another reader. */
function registerLag(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: lagResolution });
  delay.enable();
  const readPart = (): number => {
    const p99 = delay.percentile(99) / nanoseconds - lagResolution / milliseconds;
    return Number.isFinite(p99) ? Math.max(0, p99) : 0;
  };
  const parts: number[] = [];
  const timer = setInterval(() => {
    parts.push(readPart());
    if (parts.length > lagParts) parts.shift();
    delay.reset();
  }, lagPart).unref();
  const help = 'Delay of the event loop in the last minute, 99th percentile.';
  metrics.gauge('nodejs_eventloop_lag_p99_seconds', help, () => Math.max(readPart(), ...parts));
  return () => {
    clearInterval(timer);
    delay.disable();
  };
}
