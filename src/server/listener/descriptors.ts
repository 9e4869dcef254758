import { readFileSync } from 'node:fs';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';

/** Connections that a process may have open, and what is said when there are more. */
export interface ConnectionLimit {
  /** `undefined` if the system does not tell how many files a process may have open. */
  readonly most: number | undefined;
  /** Counts a connection that was closed because there are too many. */
  note(): void;
}

/** Files that a process has open besides connections: log, Redis, the provider, the channel to another process. */
const reserve = 64;
/** Milliseconds between two lines about it. */
const quietTime = 10_000;

/**
 * Without a file descriptor to spare, the system closes new connections, and nobody hears of it. So the service closes
 * them a little earlier, and says so.
 */
export function createConnectionLimit(log: Log, metrics: Metrics): ConnectionLimit {
  const most = readMost();
  const refused = metrics.counter(
    'portcullis_connections_refused_total',
    'Connections that were closed at once, since as many are open as the limit on open files allows.',
  );
  refused.series('');
  let unsaid = 0;
  let quietUntil = 0;
  return {
    most,
    note() {
      refused.series('').value++;
      unsaid++;
      if (performance.now() < quietUntil) return;
      quietUntil = performance.now() + quietTime;
      const fix = 'Raise the limit on open files (ulimit -n, LimitNOFILE), or run more instances.';
      log.write('error', 'connections_refused', { connections: unsaid, most, fix });
      unsaid = 0;
    },
  };
}

function readMost(): number | undefined {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return limit === undefined ? undefined : Math.max(1, Number(limit) - reserve);
  } catch {
    return undefined;
  }
}
