import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

/** The build that runs. */
export interface Build {
  readonly version: string;
  /** Commit of the sources; empty if the build did not know it. */
  readonly commit: string;
}

export function registerServiceMetrics(metrics: Metrics, log: Log, { version, commit }: Build): void {
  const series = { [`{version="${version}",commit="${commit}"}`]: 1 };
  const help = 'Always 1; the labels are the version and the commit of the build.';
  metrics.gauge({ name: 'portcullis_build_info', help, aggregate: 'max', read: () => series });
  metrics.gauge({
    name: 'portcullis_log_lines_dropped_total',
    help: 'Log lines that were lost because their reader was too slow or closed.',
    type: 'counter',
    read: () => log.countDropped(),
  });
}
