import { describe, expect, it } from 'vitest';
import { aims, judge, limits, requests, unsettledPairs } from '../../tools/bench/aims.js';
import { formatComparison } from '../../tools/bench/compare.js';
import { runUndisturbed } from '../../tools/bench/measure.js';
import { readResults } from '../../tools/bench/publish.js';
import { formatReport } from '../../tools/bench/report.js';

/** Measurements of one server and one workload, with these costs in µs, one a round. */
const rounds = (costs: readonly (number | undefined)[]) =>
  costs.flatMap((cpu, round) => (cpu === undefined ? [] : [{ round, cpu }]));
const six = (cost: number) => rounds(Array.from({ length: 6 }, () => cost));
const row = (name: string) => aims.find((each) => each.name.startsWith(name));

describe('the rows of aims', () => {
  it('warm costs 29 µs and the open endpoint 20 → 0.69, which misses 0.72', () => {
    const [found] = judge({ http: { samples: { portcullis: { warm: six(29), open: six(20) } } } });
    expect(found).toMatchObject({ name: 'warm : open endpoint', verdict: 'missed', settled: true });
    expect(found?.found.value).toBeCloseTo(20 / 29, 10);
  });

  it('a row of limits → undecided, without an aim', () => {
    const samples = { portcullis: { warm: six(20) }, 'raw-floor': { warm: six(16) } };
    const [found] = judge({ http: { samples } }, limits);
    expect(found).toMatchObject({ name: 'warm : raw floor', verdict: 'undecided' });
    expect(found).not.toHaveProperty('aim');
  });

  it('every row of aims has an aim, and no limit has one', () => {
    expect(aims.filter(({ aim }) => aim === undefined)).toEqual([]);
    expect(limits.filter(({ aim }) => aim !== undefined)).toEqual([]);
  });

  it('a round that one side lacks → is compared with no other round', () => {
    const samples = { portcullis: { warm: rounds([10, undefined, 40]), open: rounds([10, 999, 20]) } };
    expect(row('warm : open endpoint')?.rounds({ http: { samples } })).toEqual([1, 0.5]);
  });

  it('four rounds that all say the same → undecided: they may agree by chance', () => {
    const four = (cost: number) => rounds([cost, cost, cost, cost]);
    const [found] = judge({ http: { samples: { portcullis: { warm: four(25), open: four(20) } } } });
    expect(found).toMatchObject({ verdict: 'undecided', settled: false });
  });

  it('nothing was measured → no row', () => expect(judge({})).toEqual([]));

  it('10 000 rules cost 2.5 µs and one rule 2 → 0.8, which misses 0.9', () => {
    const cost = (size: number, value: number) => ({ size, costs: [value, value, value, value, value] });
    const found = judge({ rules: { rows: [cost(1, 2), cost(100, 2), cost(10_000, 2.5)] } });
    expect(found.map(({ verdict }) => verdict)).toEqual(['met', 'missed']);
    expect(found[1]?.found.value).toBeCloseTo(0.8, 10);
  });

  it('100 upstreams → compared with one rule and one upstream', () => {
    const cost = (size: number, upstreams: number, value: number) => ({
      ...{ size, upstreams },
      costs: [value, value, value, value, value],
    });
    const found = judge({ rules: { rows: [cost(1, 1, 2), cost(10_000, 1, 2), cost(10_000, 100, 4)] } });
    expect(found.map(({ found: { value } }) => value)).toEqual([1, 0.5]);
  });

  it('every row names a bench and what was running', () => {
    for (const { name, command, covers } of aims) {
      expect([name, /^(?:http|gate|rules)$/.test(command), covers.length > 0]).toEqual([name, true, true]);
    }
  });
});

it('the kept results, of a run with fewer servers → every table', () => {
  for (const table of Object.values(formatReport(readResults()))) expect(table).not.toMatch(/undefined|NaN/);
});

describe('repeated measurements', () => {
  const noisy = rounds([10, 14, 9, 20, 12, 8]);

  it('a settled ratio → nothing', () =>
    expect(unsettledPairs({ portcullis: { warm: six(25), open: six(20) } })).toEqual([]));

  it('an interval that is too wide → both sides, each once', () => {
    const samples = { portcullis: { warm: noisy, open: six(20), malformed: six(20) } };
    expect(unsettledPairs(samples)).toEqual([
      ['portcullis', 'warm'],
      ['portcullis', 'open'],
    ]);
  });

  it('a server that is not installed → omitted', () =>
    expect(unsettledPairs({ 'portcullis-bun': { warm: noisy } })).toEqual([]));
});

describe('a disturbed run', () => {
  const calm = { others: 0.01, stolen: 0, rate: 3 };
  const busy = { others: 0.4, stolen: 0, rate: 1 };
  const robbed = { others: 0, stolen: 0.1, rate: 2 };

  it.each([
    ['nobody disturbs', [calm], { ...calm, repeated: 0, disturbed: false }],
    ['others had the processor once', [busy, calm], { ...calm, repeated: 1, disturbed: false }],
    ['the host took it once', [robbed, calm], { ...calm, repeated: 1, disturbed: false }],
    ['it never gets quiet', [busy, robbed, busy], { ...robbed, repeated: 2, disturbed: true }],
  ])('%s → %j', async (_, runs, expected) => {
    const left = [...runs];
    const found = await runUndisturbed(() => Promise.resolve(left.shift()), ['a', 'b', 'c']);
    expect(found).toEqual(expected);
    expect(left).toEqual([]);
  });

  it('the repeats of the whole run are used up → the disturbed one counts', async () => {
    const budget = { repeats: 1 };
    const run = () => Promise.resolve(busy);
    expect(await runUndisturbed(run, ['a', 'b', 'c'], budget)).toMatchObject({ repeated: 1 });
    expect(await runUndisturbed(run, ['a', 'b', 'c'], budget)).toMatchObject({ repeated: 0, disturbed: true });
  });
});

describe('two builds', () => {
  const rows = [requests('warm', ['here', 'warm'], ['there', 'warm'])];

  it.each([
    ['the other one needs twice as much', 40, 'faster'],
    ['the other one needs half as much', 10, 'slower'],
  ])('%s → this build is %3$s', (_, cost, expected) => {
    const text = formatComparison({ here: { warm: six(20) }, there: { warm: six(cost) } }, rows);
    expect(text).toContain((cost / 20).toFixed(3));
    expect(text.trim().endsWith(`${expected} |`)).toBe(true);
  });

  it('two rounds that agree → undecided', () => {
    const samples = { here: { warm: rounds([20, 20]) }, there: { warm: rounds([10, 10]) } };
    expect(formatComparison(samples, rows)).toContain('too few rounds');
  });

  it('now one needs more, now the other → no difference shown', () => {
    const samples = {
      here: { warm: rounds([10, 20, 10, 20, 10, 20]) },
      there: { warm: rounds([20, 10, 20, 10, 20, 10]) },
    };
    expect(formatComparison(samples, rows)).toContain('no difference shown');
  });
});
