type Aggregate = 'sum' | 'max' | 'min';

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly aggregate: Aggregate;
  /** Values by the label part of the series, such as `{route="/a"}`, or by suffix and labels for a histogram. */
  readonly series: Readonly<Record<string, number>>;
}

/** The metrics of one process at one moment; plain data, so that workers can send it. */
export type MetricsSnapshot = readonly Family[];

/** One count. Callers hold it, so that an increment needs no lookup. */
export interface Series {
  value: number;
}

/** A number that only grows, by labels. */
export interface Counter {
  /** `labels` is the label part of the series, such as `{reason="expired"}`, or the empty string. */
  series(labels?: string): Series;
}

/** Observations in seconds, by buckets. */
export interface Observations {
  observe(seconds: number): void;
}

/** Observations by labels. */
export interface Histogram {
  /** `labels` is the label part, as for a counter. */
  series(labels?: string): Observations;
}

/** The metrics of one process: counters, and gauges that are read for each snapshot. */
export interface Metrics {
  counter(name: string, help: string): Counter;
  histogram(name: string, help: string): Histogram;
  /** `read` returns the value, or values by label part; `undefined` omits the series. */
  gauge(description: {
    readonly name: string;
    readonly help: string;
    readonly type?: 'gauge' | 'counter';
    /** Default: `sum`. */
    readonly aggregate?: Aggregate;
    readonly read: () => number | Readonly<Record<string, number>> | undefined;
  }): void;
  snapshot(): MetricsSnapshot;
}

/** Upper bounds in seconds: from a cached decision to a fetch of keys. */
const bucketBounds = [
  ...[0.000_01, 0.000_025, 0.000_05],
  ...[0.000_1, 0.000_25, 0.000_5],
  ...[0.001, 0.002_5, 0.005],
  ...[0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5],
  ...[1, 2.5, 5],
];

export function createMetrics(): Metrics {
  const readers: (() => Family)[] = [];
  return {
    counter(name, help) {
      const all = new Map<string, Series>();
      readers.push(() => {
        const series = Object.fromEntries(Array.from(all, ([labels, { value }]) => [labels, value]));
        return { name, help, type: 'counter', aggregate: 'sum', series };
      });
      return {
        series(labels = '') {
          const series = all.get(labels) ?? { value: 0 };
          all.set(labels, series);
          return series;
        },
      };
    },
    histogram(name, help) {
      const all = new Map<string, Buckets>();
      readers.push(() => {
        const series = Object.assign({}, ...Array.from(all, ([labels, buckets]) => histogramSeries(labels, buckets)));
        return { name, help, type: 'histogram', aggregate: 'sum', series };
      });
      return {
        series(labels = '') {
          const buckets = all.get(labels) ?? { counts: new Float64Array(bucketBounds.length + 1), sum: 0 };
          all.set(labels, buckets);
          return {
            observe(seconds) {
              let index = 0;
              while (seconds > (bucketBounds[index] ?? Number.POSITIVE_INFINITY)) index++;
              buckets.counts[index] = (buckets.counts[index] ?? 0) + 1;
              buckets.sum += seconds;
            },
          };
        },
      };
    },
    gauge({ name, help, type = 'gauge', aggregate = 'sum', read }) {
      readers.push(() => {
        const value = read();
        const series = typeof value === 'number' ? { '': value } : (value ?? {});
        return { name, help, type, aggregate, series };
      });
    },
    snapshot: () => readers.map((read) => read()),
  };
}

interface Buckets {
  readonly counts: Float64Array;
  sum: number;
}

function histogramSeries(labels: string, { counts, sum }: Buckets): Record<string, number> {
  const series: Record<string, number> = {};
  const start = labels === '' ? '{' : `${labels.slice(0, -1)},`;
  let count = 0;
  for (const [index, observed] of counts.entries()) {
    count += observed;
    series[`_bucket${start}le="${bucketBounds[index] ?? '+Inf'}"}`] = count;
  }
  series[`_sum${labels}`] = sum;
  series[`_count${labels}`] = count;
  return series;
}

const combine: Readonly<Record<Aggregate, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  max: Math.max,
  min: Math.min,
};

export function mergeSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const merged = new Map<string, Family & { readonly series: Record<string, number> }>();
  for (const family of snapshots.flat()) {
    const series: Record<string, number> = merged.get(family.name)?.series ?? {};
    for (const [labels, value] of Object.entries(family.series)) {
      const before = series[labels];
      if (before === undefined) series[labels] = value;
      else series[labels] = combine[family.aggregate](before, value);
    }
    merged.set(family.name, { ...family, series });
  }
  return [...merged.values()];
}

/** Prometheus text exposition format 0.0.4. */
export function formatMetrics(snapshot: MetricsSnapshot): string {
  let text = '';
  for (const { name, help, type, series } of snapshot) {
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const [labels, value] of Object.entries(series)) text += `${name}${labels} ${value}\n`;
  }
  return text;
}

export function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
