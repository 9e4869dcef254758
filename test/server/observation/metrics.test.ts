import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, vi } from 'vitest';
import { createMetrics, formatMetrics } from '../../../src/server/observation/metrics.ts';
import { registerProcessMetrics } from '../../../src/server/observation/process-metrics.ts';

/** Parses the text format into series, and fails on a line that is none. */
function parse(text: string): ReadonlyMap<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || /^# (?:HELP [a-z0-9_]+ .+|TYPE [a-z0-9_]+ (?:counter|gauge|histogram))$/.test(line)) continue;
    const [, name, value] = /^([a-z0-9_]+(?:\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})?) (\S+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`no line of the format: ${line}`);
    if (series.has(name)) throw new Error(`series twice: ${name}`);
    series.set(name, Number(value));
  }
  return series;
}

describe('counter', () => {
  it('each label part → its own series', () => {
    const metrics = createMetrics();
    const counter = metrics.counter('requests_total', 'Requests.');
    counter.series('{route="/a"}').value++;
    counter.series('{route="/b"}').value++;
    counter.series('{route="/a"}').value++;
    expect(formatMetrics(metrics.snapshot())).toBe(
      '# HELP requests_total Requests.\n# TYPE requests_total counter\n' +
        'requests_total{route="/a"} 2\nrequests_total{route="/b"} 1\n',
    );
  });

  it('no labels → the bare name; nothing counted → the heading alone', () => {
    const metrics = createMetrics();
    const counter = metrics.counter('hits_total', 'Hits.');
    expect([...parse(formatMetrics(metrics.snapshot()))]).toEqual([]);
    counter.series().value++;
    counter.series().value++;
    expect([...parse(formatMetrics(metrics.snapshot()))]).toEqual([['hits_total', 2]]);
  });

  it('snapshot taken before → does not grow', () => {
    const metrics = createMetrics();
    const counter = metrics.counter('hits_total', 'Hits.');
    counter.series().value++;
    const before = metrics.snapshot();
    counter.series().value++;
    expect(parse(formatMetrics(before)).get('hits_total')).toBe(1);
    expect(parse(formatMetrics(metrics.snapshot())).get('hits_total')).toBe(2);
  });
});

describe('histogram', () => {
  it('observations → cumulative buckets, bounds included, with sum and count', () => {
    const metrics = createMetrics();
    const histogram = metrics.histogram('seconds', 'Time.').series();
    for (const seconds of [0, 0.000_01, 0.000_02, 0.5, 5, 5.000_1, 100]) histogram.observe(seconds);
    const series = parse(formatMetrics(metrics.snapshot()));
    expect([...series.keys()].slice(0, 19)).toEqual(
      [
        ...['0.00001', '0.000025', '0.00005', '0.0001', '0.00025', '0.0005'],
        ...['0.001', '0.0025', '0.005', '0.01', '0.025', '0.05'],
        ...['0.1', '0.25', '0.5', '1', '2.5', '5', '+Inf'],
      ].map((bound) => `seconds_bucket{le="${bound}"}`),
    );
    expect([...series.values()].slice(0, 19)).toEqual([2, ...Array(13).fill(3), 4, 4, 4, 5, 7]);
    expect(series.get('seconds_count')).toBe(7);
    expect(series.get('seconds_sum')).toBeCloseTo(110.500_13, 5);
  });

  it('labels → buckets, sum and count of their own', () => {
    const metrics = createMetrics();
    const histogram = metrics.histogram('seconds', 'Time.');
    histogram.series('{route="/a"}').observe(0.5);
    histogram.series('{route="/b"}').observe(5);
    histogram.series('{route="/b"}').observe(0.5);
    const series = parse(formatMetrics(metrics.snapshot()));
    const read = (route: string) =>
      [`_bucket{route="${route}",le="0.5"}`, `_bucket{route="${route}",le="+Inf"}`, `_sum{route="${route}"}`].map(
        (name) => series.get(`seconds${name}`),
      );
    expect([read('/a'), read('/b')]).toEqual([
      [1, 1, 0.5],
      [1, 2, 5.5],
    ]);
  });

  it('nothing observed → zeros', () => {
    const metrics = createMetrics();
    metrics.histogram('seconds', 'Time.').series();
    expect(new Set(parse(formatMetrics(metrics.snapshot())).values())).toEqual(new Set([0]));
  });
});

describe('gauge', () => {
  it.each([
    ['a number', 7, [['value', 7]]],
    ['zero', 0, [['value', 0]]],
    [
      'several series',
      { '{kind="a"}': 1, '{kind="b"}': 2 },
      [
        ['value{kind="a"}', 1],
        ['value{kind="b"}', 2],
      ],
    ],
    ['nothing', undefined, []],
  ])('%s → %j', (_name, value, series) => {
    const metrics = createMetrics();
    metrics.gauge('value', 'Value.', () => value);
    expect([...parse(formatMetrics(metrics.snapshot()))]).toEqual(series);
  });

  it('is read on request; a name that ends in _total → a counter', () => {
    const metrics = createMetrics();
    let value = 1;
    metrics.gauge('cpu_total', 'CPU.', () => value);
    value = 2;
    expect(formatMetrics(metrics.snapshot())).toBe('# HELP cpu_total CPU.\n# TYPE cpu_total counter\ncpu_total 2\n');
  });
});

it('measurements of the process → end with their service', async () => {
  const start = () => {
    const metrics = createMetrics();
    const end = registerProcessMetrics(metrics);
    const read = () => parse(formatMetrics(metrics.snapshot())).get('nodejs_gc_seconds_total{kind="major"}');
    return { end, read };
  };
  const [ended, running] = [start(), start()];
  ended.end();
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  await vi.waitFor(() => expect(running.read()).toBeGreaterThan(0));
  expect(ended.read()).toBe(0);
  running.end();
});
