// The tables of a run in Markdown: printed, and written into the documentation.
import { compare, judge, median } from './ratios.js';
import { servers } from './servers.js';
import { workloads } from './workloads.js';

/** The first column is text, the others are figures. */
export function table(head, rows) {
  if (rows.length === 0) return '';
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length), 3));
  const line = (cells) =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

const thousands = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ');
const decimals = (value, places) => (value === undefined ? '' : value.toFixed(places));
const middle = (list, field) => median(list.map((each) => each[field]));

const ratioTable = ({ samples }) =>
  table(
    ['requests a second of Portcullis to', 'ratio', 'rounds', 'by CPU', 'aim', 'met'],
    compare(samples).map(({ name, value, least, most, byCpu, aim, isMet }) => [
      name,
      decimals(value, 2),
      `${decimals(least, 2)} … ${decimals(most, 2)}`,
      decimals(byCpu, 2),
      `≥ ${aim}`,
      isMet ? 'yes' : 'no',
    ]),
  );

const limitTable = ({ figures }) =>
  table(
    ['Portcullis by itself', 'measured', 'aim', 'met'],
    judge(figures).map(({ name, value, aim, isMet }) => [name, decimals(value, 0), `≤ ${aim}`, isMet ? 'yes' : 'no']),
  );

/** One table a workload: every server that has it, the fastest first. */
function workloadTable({ samples }, workload) {
  const rows = Object.keys(servers)
    .map((name) => ({ name, list: samples[name]?.[workload] ?? [] }))
    .filter(({ list }) => list.length > 0)
    .map(({ name, list }) => ({ label: servers[name].label, list, rate: middle(list, 'rate') }))
    .toSorted((a, b) => b.rate - a.rate);
  return table(
    [workloads[workload].label, 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs', 'busy', 'MiB'],
    rows.map(({ label, list, rate }) => [
      label,
      thousands(rate),
      decimals(middle(list, 'p50') / 1000, 2),
      decimals(middle(list, 'p99') / 1000, 2),
      decimals(middle(list, 'cpu'), 1),
      `${decimals(middle(list, 'busy') * 100, 0)} %`,
      decimals(middle(list, 'memory'), 0),
    ]),
  );
}

function figureTables({ figures: { start, memory, workers, growth } }) {
  const all = [];
  if (start !== undefined) {
    const { milliseconds } = start;
    const [least, most] = [Math.min(...milliseconds), Math.max(...milliseconds)];
    all.push(
      table(
        ['start, provider out of reach', 'ms'],
        [
          ['median', median(milliseconds)],
          ['least', least],
          ['most', most],
        ].map(([name, value]) => [name, decimals(value, 0)]),
      ),
    );
  }
  if (memory !== undefined) {
    const { idle, full, million } = memory.mebibytes;
    const row = (name, value) => [name, decimals(value, 0), decimals(value - idle, 0)];
    all.push(
      table(
        ['resident memory', 'MiB', 'above idle'],
        [row('idle', idle), row('100 000 distinct tokens seen', full), row('1 000 000 distinct tokens seen', million)],
      ),
    );
  }
  if (workers !== undefined) {
    const [one, two] = [median(workers.rates[1]), median(workers.rates[2])];
    all.push(
      table(
        ['workers, on both processors with the load', 'requests/s', 'ratio'],
        [
          ['1', thousands(one), '1.00'],
          ['2', thousands(two), decimals(two / one, 2)],
        ],
      ),
    );
  }
  for (const [name, rows] of Object.entries(growth ?? {})) {
    all.push(
      table(
        [name, 'bytes', 'new, µs', 'seen before, µs'],
        rows.map(({ size, bytes, cold, warm }) => [
          String(size),
          thousands(bytes),
          decimals(cold, 1),
          decimals(warm, 1),
        ]),
      ),
    );
  }
  return all;
}

/** Below this share of its processor, a server waited for wrk, or shared the processor with somebody else. */
const saturated = 0.95;

function notesOf({ samples, notes }) {
  const waiting = Object.entries(samples).flatMap(([name, byWorkload]) => {
    const idle = Object.entries(byWorkload).filter(([, list]) => middle(list, 'busy') < saturated);
    const shares = idle.map(([workload, list]) => {
      const [busy, wrk, others] = ['busy', 'wrk', 'others'].map((field) => decimals(middle(list, field) * 100, 0));
      return `${workload} ${busy} % (wrk ${wrk} %, others ${others} %)`;
    });
    return shares.length === 0
      ? []
      : [`${servers[name].label}: used its processor only in part, so its rate is a lower bound: ${shares.join(', ')}`];
  });
  const broken = Object.entries(samples).flatMap(([name, byWorkload]) => {
    const count = Object.values(byWorkload)
      .flat()
      .reduce((sum, sample) => sum + sample.broken, 0);
    return count === 0 ? [] : [`${servers[name].label}: ${count} requests broke off or took too long`];
  });
  const said = Object.entries(notes).flatMap(([name, list]) => list.map((text) => `${servers[name].label}: ${text}`));
  return [...said, ...broken, ...waiting].map((text) => `- ${text}`).join('\n');
}

const join = (parts) => parts.filter((part) => part !== '').join('\n\n');

/** How far others disturbed the run: what counts is the share that they took while a server was loaded. */
function describeQuiet({ samples }) {
  const shares = Object.values(samples)
    .flatMap((byWorkload) => Object.values(byWorkload))
    .flat()
    .map(({ others }) => others * 100);
  if (shares.length === 0) return '';
  return ` While a server was loaded, others used ${decimals(median(shares), 0)} % of its processor (median of all measurements).`;
}

/** The blocks of a report by name: what stands between the markers of the documentation. */
export function formatReport(results) {
  const { date, cpu, versions, settings } = results;
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return {
    chart: '![Requests a second on one processor, by server](performance.svg)',
    ratios: join([ratioTable(results), limitTable(results)]),
    run:
      `${date.slice(0, 10)}, ${cpu}; ${settings.rounds} rounds of ${settings.seconds} s each, ` +
      `${settings.minutes} minutes in all. ${named.join(', ')}.` +
      describeQuiet(results),
    workloads: join(Object.keys(workloads).map((workload) => workloadTable(results, workload))),
    figures: join(figureTables(results)),
    notes: notesOf(results),
  };
}

/** Prints the ratios first, then all the rest. */
export function printReport(results) {
  const { ratios, run, workloads: rates, figures, notes } = formatReport(results);
  console.log(`\n${join([ratios, run, rates, figures, notes])}\n`);
}
