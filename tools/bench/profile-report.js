// The tables of the profiler, in Markdown.
import { table } from './table.js';
import { workloads } from './workloads.js';

/** A row for each group of functions: its part of the processor time of a request, by workload. */
export function formatProfile({ columns, beside: label }) {
  const groups = [...new Set(columns.flatMap(({ shares }) => Object.keys(shares)))];
  const first = columns[0].shares;
  groups.sort((a, b) => (first[b] ?? 0) - (first[a] ?? 0));
  const show = (value) => (value === undefined ? '' : value.toFixed(1));
  return table(
    ['µs of processor time a request', ...columns.map(({ workload }) => workloads[workload].label)],
    [
      ...groups.map((group) => [group, ...columns.map(({ shares, cpu }) => show((shares[group] ?? 0) * cpu))]),
      ['all', ...columns.map(({ cpu }) => show(cpu))],
      [label, ...columns.map(({ beside }) => show(beside))],
    ],
  );
}
