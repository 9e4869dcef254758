import type { ProcessContext } from '../lifecycle/process-context.ts';
import { readDescriptorLimit } from '../observation/process-metrics.ts';

/** Descriptors for other files than connections: log, Redis, the provider, the channel to another process. */
const reserve = 64;
/** Milliseconds between two log lines. */
const quietTime = 10_000;

/** Without free descriptors the system closes new connections silently. The service closes them before, and logs it. */
export function createConnectionLimit({ log, metrics }: ProcessContext) {
  const limit = readDescriptorLimit();
  const most = limit === undefined ? undefined : Math.max(1, limit - reserve);
  const help = 'Connections that were closed because the limit on open files was reached.';
  const refused = metrics.counter('portcullis_connections_refused_total', help).series();
  let unreported = 0;
  let quietUntil = 0;
  return {
    /** `undefined` on systems without /proc. */
    most,
    /** Counts a connection that was closed because there are too many. */
    note(): void {
      refused.value++;
      unreported++;
      if (performance.now() < quietUntil) return;
      quietUntil = performance.now() + quietTime;
      const fix = 'Raise the limit on open files (ulimit -n, LimitNOFILE), or run more instances.';
      log.write('error', 'connections_refused', { connections: unreported, most, fix });
      unreported = 0;
    },
  };
}

export type ConnectionLimit = ReturnType<typeof createConnectionLimit>;
