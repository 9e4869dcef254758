/** How series of one family from several processes become one. */
type Aggregate = 'sum' | 'max';

/** The series of one name. */
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

/** One count; who adds to it often keeps it at hand. */
export interface Series {
  value: number;
}

/** A number that only grows, by labels. */
export interface Counter {
  /** `labels` is the label part of the series, such as `{reason="expired"}`, or the empty string. */
  series(labels?: string): Series;
}

/** Observations in seconds, by buckets. */
export interface Histogram {
  observe(seconds: number): void;
}

/** The metrics of one process: plain counters, and gauges that are read when asked for. */
export interface Metrics {
  counter(name: string, help: string): Counter;
  histogram(name: string, help: string): Histogram;
  /** `read` gives the value at the time of asking; `undefined` leaves the series out. */
  gauge(description: {
    readonly name: string;
    readonly help: string;
    readonly type?: 'gauge' | 'counter';
    readonly aggregate: Aggregate;
    readonly read: () => number | Readonly<Record<string, number>> | undefined;
  }): void;
  snapshot(): MetricsSnapshot;
}

/** Upper bounds in seconds: from a cached decision to a fetch that was waited for. */
const bucketBounds = [
  ...[0.000_01, 0.000_025, 0.000_05],
  ...[0.000_1, 0.000_25, 0.000_5],
  ...[0.001, 0.002_5, 0.005],
  ...[0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5],
  ...[1, 2.5, 5],
];

/** Creates an empty set of metrics. */
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
      const buckets = new Float64Array(bucketBounds.length + 1);
      let sum = 0;
      readers.push(() => ({ name, help, type: 'histogram', aggregate: 'sum', series: histogramSeries(buckets, sum) }));
      return {
        observe(seconds) {
          let index = 0;
          while (seconds > (bucketBounds[index] ?? Number.POSITIVE_INFINITY)) index++;
          buckets[index] = (buckets[index] ?? 0) + 1;
          sum += seconds;
        },
      };
    },
    gauge({ name, help, type = 'gauge', aggregate, read }) {
      readers.push(() => {
        const value = read();
        const series = typeof value === 'number' ? { '': value } : (value ?? {});
        return { name, help, type, aggregate, series };
      });
    },
    snapshot: () => readers.map((read) => read()),
  };
}

function histogramSeries(buckets: Float64Array, sum: number): Record<string, number> {
  const series: Record<string, number> = {};
  let count = 0;
  for (const [index, observed] of buckets.entries()) {
    count += observed;
    series[`_bucket{le="${bucketBounds[index] ?? '+Inf'}"}`] = count;
  }
  series['_sum'] = sum;
  series['_count'] = count;
  return series;
}

/** One set of metrics out of those of several processes. */
export function mergeSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const merged = new Map<string, Family & { readonly series: Record<string, number> }>();
  for (const family of snapshots.flat()) {
    const series: Record<string, number> = merged.get(family.name)?.series ?? {};
    for (const [labels, value] of Object.entries(family.series)) {
      const before = series[labels];
      if (before === undefined) series[labels] = value;
      else series[labels] = family.aggregate === 'sum' ? before + value : Math.max(before, value);
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

/** The value of a label, as the text format has it. */
export function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
