import { describe, expect, it } from 'vitest';
import { createMetrics, createWorkerMetrics, formatMetrics } from '../../../src/server/observation/metrics.ts';

function createWorker() {
  const metrics = createMetrics();
  const calls = metrics.counter('calls_total', 'Calls.').series();
  const seconds = metrics.histogram('call_seconds', 'Time.').series();
  metrics.gauge({ name: 'open', help: 'Open.', aggregate: 'sum', read: () => 1 });
  return {
    call() {
      calls.value++;
      seconds.observe(0.001);
    },
    snapshot: metrics.snapshot,
  };
}

describe('metrics of workers', () => {
  it('a worker ends → what it counted still counts, its gauges do not', () => {
    const workers = createWorkerMetrics();
    const [first, second] = [createWorker(), createWorker()];
    for (let i = 0; i < 3; i++) first.call();
    second.call();
    workers.keep(1, first.snapshot());
    workers.keep(2, second.snapshot());
    workers.retire(1);
    const text = formatMetrics(workers.read());
    expect(text).toContain('\ncalls_total 4\n');
    expect(text).toContain('\ncall_seconds_count 4\n');
    expect(text).toContain('\nopen 1\n');
  });

  it('the last word of a worker comes after its end → it counts once', () => {
    const workers = createWorkerMetrics();
    const worker = createWorker();
    worker.call();
    workers.keep(1, worker.snapshot());
    workers.retire(1);
    workers.keep(1, worker.snapshot());
    expect(formatMetrics(workers.read())).toContain('\ncalls_total 1\n');
  });
});
