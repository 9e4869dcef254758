import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

/** Registers what does not depend on requests: the version, and lines that nobody read. */
export function registerServiceMetrics(metrics: Metrics, log: Log, version: string): void {
  metrics.gauge({
    name: 'portcullis_build_info',
    help: 'Always 1; the label is the version.',
    aggregate: 'max',
    read: () => ({ [`{version="${version}"}`]: 1 }),
  });
  metrics.gauge({
    name: 'portcullis_log_lines_dropped_total',
    help: 'Log lines that were dropped, since nobody read them in time.',
    type: 'counter',
    aggregate: 'sum',
    read: () => log.countDropped(),
  });
}
