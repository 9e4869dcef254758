import { type Family, type MetricsSnapshot, mergeSnapshots } from './metrics.ts';

/** The metrics of workers that come and go. */
export interface WorkerMetrics {
  /** Keeps what a worker says of itself now. */
  keep(worker: number, snapshot: MetricsSnapshot): void;
  /** A worker has ended: what it counted still counts. */
  retire(worker: number): void;
  /** The sum of all workers, those that have ended included. Counters never fall. */
  read(): MetricsSnapshot;
}

/** Remembers the last word of each worker, since a counter that falls makes `rate()` of Prometheus wrong. */
export function createWorkerMetrics(): WorkerMetrics {
  const latest = new Map<number, MetricsSnapshot>();
  const ended = new Set<number>();
  let retired: MetricsSnapshot = [];
  return {
    keep(worker, snapshot) {
      // The last message of a worker can come after its end.
      if (!ended.has(worker)) latest.set(worker, snapshot);
    },
    retire(worker) {
      ended.add(worker);
      const counted = (latest.get(worker) ?? []).filter(isCounted);
      retired = mergeSnapshots([retired, counted]);
      latest.delete(worker);
    },
    read: () => mergeSnapshots([retired, ...latest.values()]),
  };
}

/** Whether a family only grows; a gauge of a worker that has ended says nothing any more. */
function isCounted({ type }: Family): boolean {
  return type !== 'gauge';
}

/** What the primary knows of its workers. */
export function describeWorkers(up: number, restarts: number): MetricsSnapshot {
  return [
    {
      name: 'portcullis_workers_up',
      help: 'Workers that run.',
      type: 'gauge',
      aggregate: 'sum',
      series: { '': up },
    },
    {
      name: 'portcullis_worker_restarts_total',
      help: 'Workers that were started again after one had ended.',
      type: 'counter',
      aggregate: 'sum',
      series: { '': restarts },
    },
  ];
}
