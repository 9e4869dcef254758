import type { ManagedKeySet } from '../../keys/key-set.ts';
import { escapeLabel, type Metrics } from '../observation/metrics.ts';

/** A key set of an issuer. One issuer may have several, at different URLs. */
interface OpenedKeys {
  readonly issuer: string;
  readonly keys: ManagedKeySet;
}

type Read = (keys: ManagedKeySet) => number | undefined;
type Combine = (one: number, other: number) => number;

const add: Combine = (one, other) => one + other;

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
  const gauge = (name: string, help: string, of: Read, combine: Combine): void =>
    metrics.gauge({ name: `portcullis_key_set_${name}`, help, aggregate: 'max', read: () => read(of, combine) });
  gauge('age_seconds', 'Seconds since the last fetch, by issuer.', (keys) => keys.status().ageSeconds, Math.max);
  gauge('keys', 'Usable keys that are loaded, by issuer.', (keys) => keys.status().keys, add);
  gauge(
    'usable',
    '1 if tokens of the issuer can be validated, otherwise 0.',
    (keys) => Number(keys.usable()),
    Math.min,
  );
  metrics.gauge({
    name: 'portcullis_key_fetches_total',
    help: 'Fetches of the key set by issuer and outcome.',
    type: 'counter',
    read: () => ({
      ...read((keys) => keys.status().fetches.ok, add, ',outcome="ok"'),
      ...read((keys) => keys.status().fetches.failed, add, ',outcome="failed"'),
    }),
  });
}
