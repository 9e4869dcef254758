interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Values by the label part of the series, such as `{route="/a"}`, or by suffix and labels for a histogram. */
  readonly series: Readonly<Record<string, number>>;
}

/** The metrics at one moment. */
export type MetricsSnapshot = readonly Family[];

export type Metrics = ReturnType<typeof createMetrics>;

/** Upper bounds in seconds: from a cached decision to a fetch of keys. */
const bucketBounds = [
  0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
  1, 2.5, 5,
];

/** Observations in seconds, by buckets. */
function createHistogram() {
  const counts = new Float64Array(bucketBounds.length + 1);
  let sum = 0;
  return {
    observe(seconds: number): void {
      let index = 0;
      while (seconds > (bucketBounds[index] ?? Number.POSITIVE_INFINITY)) index++;
      counts[index] = (counts[index] ?? 0) + 1;
      sum += seconds;
    },
    read(labels: string): Readonly<Record<string, number>> {
      const series: Record<string, number> = {};
      const start = labels === '' ? '{' : `${labels.slice(0, -1)},`;
      let count = 0;
      for (const [index, observed] of counts.entries()) {
        count += observed;
        series[`_bucket${start}le="${bucketBounds[index] ?? '+Inf'}"}`] = count;
      }
      return { ...series, [`_sum${labels}`]: sum, [`_count${labels}`]: count };
    },
  };
}

/** Creates the metrics of one process: counters, and gauges that are read for each snapshot. */
export function createMetrics() {
  const readers: (() => Family)[] = [];
  /** Adds a family whose series are created on demand. */
  const label = <T>(
    family: Pick<Family, 'name' | 'help' | 'type'>,
    create: () => T,
    read: (labels: string, series: T) => Readonly<Record<string, number>>,
  ) => {
    const all = new Map<string, T>();
    readers.push(() => ({
      ...family,
      series: Object.assign({}, ...Array.from(all, ([labels, series]) => read(labels, series))),
    }));
    return {
      /** Returns one object per label part, such as `{reason="expired"}`. */
      series(labels = ''): T {
        const known = all.get(labels);
        if (known !== undefined) return known;
        const series = create();
        all.set(labels, series);
        return series;
      },
    };
  };
  return {
    /** Numbers that only grow. A caller that holds a series needs no lookup for an increment. */
    counter: (name: string, help: string) =>
      label(
        { name, help, type: 'counter' },
        () => ({ value: 0 }),
        (labels, { value }) => ({ [labels]: value }),
      ),
    histogram: (name: string, help: string) =>
      label({ name, help, type: 'histogram' }, createHistogram, (labels, histogram) => histogram.read(labels)),
    /**
     * `read` returns the value, or values by label part; `undefined` omits the series. A name that ends in `_total` is one of
     * a counter.
     */
    gauge(name: string, help: string, read: () => number | Readonly<Record<string, number>> | undefined): void {
      const type = /_total$/.test(name) ? 'counter' : 'gauge';
      readers.push((): Family => {
        const value = read();
        const series = typeof value === 'number' ? { '': value } : (value ?? {});
        return { name, help, type, series };
      });
    },
    snapshot: (): MetricsSnapshot => readers.map((read) => read()),
  };
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
