import { type MetricsSnapshot, mergeSnapshots } from './metrics.ts';

export interface WorkerMetrics {
  keep(worker: number, snapshot: MetricsSnapshot): void;
  retire(worker: number): void;
  /** Merges all workers, including those that have ended. Counters never fall. */
  read(): MetricsSnapshot;
}

/** Retains counters, because a counter that falls makes `rate()` of Prometheus wrong. */
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
      const counters = (latest.get(worker) ?? []).filter(({ type }) => type !== 'gauge');
      retired = mergeSnapshots([retired, counters]);
      latest.delete(worker);
    },
    read: () => mergeSnapshots([retired, ...latest.values()]),
  };
}

/** The metrics of the primary process about its workers. */
export function describeWorkers(up: number, restarts: number): MetricsSnapshot {
  const family = { aggregate: 'sum' } as const;
  return [
    { ...family, name: 'portcullis_workers_up', help: 'Running workers.', type: 'gauge', series: { '': up } },
    {
      ...family,
      name: 'portcullis_worker_restarts_total',
      help: 'Workers that were started after another had ended.',
      type: 'counter',
      series: { '': restarts },
    },
  ];
}
