import type { ManagedKeySet } from '../../keys/key-set.ts';
import { escapeLabel, type Metrics } from '../observation/metrics.ts';

/** The key set of an issuer; one issuer may have several, at different places. */
interface OpenedKeys {
  readonly issuer: string;
  readonly keys: ManagedKeySet;
}

type Read = (keys: ManagedKeySet) => number | undefined;
type Combine = (one: number, other: number) => number;

const add: Combine = (one, other) => one + other;

/** Registers the metrics of key sets: one series for each issuer. */
export function registerKeyMetrics(metrics: Metrics, opened: () => Iterable<OpenedKeys>): void {
  const read = (of: Read, combine: Combine, labels = ''): Record<string, number> => {
    const series: Record<string, number> = {};
    for (const { issuer, keys } of opened()) {
      const value = of(keys);
      if (value === undefined) continue;
      const name = `{issuer="${escapeLabel(issuer)}"${labels}}`;
      const before = series[name];
      series[name] = before === undefined ? value : combine(before, value);
    }
    return series;
  };
  metrics.gauge({
    name: 'portcullis_key_set_age_seconds',
    help: 'Seconds since the fetch that brought the keys, by issuer.',
    aggregate: 'max',
    read: () => read((keys) => keys.status().ageSeconds, Math.max),
  });
  metrics.gauge({
    name: 'portcullis_key_set_keys',
    help: 'Usable keys that are loaded, by issuer.',
    aggregate: 'max',
    read: () => read((keys) => keys.status().keys, add),
  });
  metrics.gauge({
    name: 'portcullis_key_set_usable',
    help: 'Whether tokens of an issuer can be judged: 1 or 0.',
    aggregate: 'max',
    read: () => read((keys) => (keys.usable() ? 1 : 0), Math.min),
  });
  metrics.gauge({
    name: 'portcullis_key_fetches_total',
    help: 'Fetches of the key set by issuer and outcome.',
    type: 'counter',
    aggregate: 'sum',
    read: () => ({
      ...read((keys) => keys.status().fetches.ok, add, ',outcome="ok"'),
      ...read((keys) => keys.status().fetches.failed, add, ',outcome="failed"'),
    }),
  });
}
