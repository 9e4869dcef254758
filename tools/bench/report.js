// The tables of a run in Markdown: printed, and written into the documentation.

import { estimate, median } from '../shared/statistics.js';
import { judge, limits, rulesRatio } from './aims.js';
import { gateServers } from './gate-servers.js';
import { servers } from './servers.js';
import { decimals, showEstimate, table, thousands } from './table.js';
import { workloads } from './workloads.js';

const middle = (list, field) => median(list.map((each) => each[field]));

const showAim = (aim, digits) =>
  'least' in aim
    ? `≥ ${Number(aim.least.toFixed(Math.max(digits, 2)))}`
    : `≤ ${Number(aim.most.toFixed(Math.max(digits, 2)))}`;

/** Every aim with what was measured. */
const aimTable = (results) =>
  table(
    ['what', 'measured', '95 % interval', 'aim', 'verdict', 'rounds', 'covers', 'bench'],
    judge(results).map(({ name, found, aim, verdict, settled, digits = 2, covers, command }) => [
      name,
      decimals(found.value, digits),
      found.rounds < 2 ? '' : `${decimals(found.low, digits)} … ${decimals(found.high, digits)}${settled ? '' : ' *'}`,
      showAim(aim, digits),
      verdict,
      String(found.rounds),
      covers,
      command,
    ]),
  );

/** Formats the rows without an aim. */
const limitTable = (results) =>
  table(
    ['cost', 'measured', '95 % interval', 'rounds'],
    judge(results, limits).map(({ name, found }) => [
      name,
      decimals(found.value, 2),
      found.rounds < 2 ? '' : `${decimals(found.low, 2)} … ${decimals(found.high, 2)}`,
      String(found.rounds),
    ]),
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

/** The figures of each server of the gate; what a proxy adds to its upstream. */
function gateTable({ samples }) {
  const alone = samples.upstream?.warm;
  const rows = Object.entries(gateServers).flatMap(([name, { label, passes }]) =>
    Object.entries(samples[name] ?? {}).map(([workload, list]) => {
      const figure = (field) => middle(list, field) / 1000;
      const added = (field) => (passes && alone ? decimals(figure(field) - middle(alone, field) / 1000, 2) : '');
      return [
        workload === 'warm' ? label : `${label}, each token new`,
        thousands(middle(list, 'rate')),
        decimals(middle(list, 'cpu'), 1),
        ...['p50', 'p99'].map((field) => decimals(figure(field), 2)),
        ...['p50', 'p99'].map(added),
      ];
    }),
  );
  return table(
    ['one warm token, 32 connections', 'requests/s', 'CPU µs', 'p50 ms', 'p99 ms', 'added p50', 'added p99'],
    rows,
  );
}

/** Formats the figures of the service alone. */
function figureTable({ figures: { start, import: imports, memory } }) {
  const figures = {
    'start, provider unreachable, ms': start?.milliseconds,
    "import 'portcullis', ms": imports?.milliseconds,
    'idle memory, MiB': memory?.idle,
  };
  const rows = Object.entries(figures).flatMap(([name, values]) =>
    values === undefined
      ? []
      : [[name, ...[median(values), Math.min(...values), Math.max(...values)].map((value) => decimals(value, 0))]],
  );
  return table(['figure', 'median', 'least', 'most'], rows);
}

/** Servers that were left out, and failures. */
const notesOf = ({ notes }) =>
  Object.entries(notes)
    .flatMap(([name, list]) => list.map((text) => `- ${servers[name]?.label ?? name}: ${text}`))
    .join('\n');

/** The table of the matcher. */
export const formatRules = (part) =>
  table(
    'rules|upstreams|with|CPU µs a decision|added µs|1 rule : N rules|95 % interval|file loaded in ms'.split('|'),
    part.rows.map(({ size, upstreams = 1, condition, costs, loaded }) => {
      const ratio = showEstimate(estimate(rulesRatio(part, size, upstreams, condition)));
      // Differences of the same round: a busy host slows both.
      const added = median(costs.map((cost, round) => cost - part.rows[0].costs[round]));
      const figures = [median(costs).toFixed(2), added.toFixed(2), ...ratio, loaded.toFixed(0)];
      return [String(size), String(upstreams), condition ?? '–', ...figures];
    }),
  );

const join = (parts) => parts.filter((part) => part !== '').join('\n\n');

/** Describes the disturbance by other programs while a server was under load. */
function describeQuiet({ samples }) {
  const all = Object.entries(samples)
    .filter(([name]) => Object.hasOwn(servers, name))
    .flatMap(([, byWorkload]) => Object.values(byWorkload).flat());
  if (all.length === 0) return '';
  const share = (field) => decimals(median(all.map((each) => each[field] * 100)), 1);
  const count = (fits) => all.filter(fits).length;
  return (
    ` While a server was loaded, other programs used ${share('others')} % of its processor and the host took ${share('stolen')} % ` +
    `(medians of ${all.length} measurements); ${count(({ repeated }) => repeated > 0)} were disturbed and repeated, ` +
    `${count(({ disturbed }) => disturbed)} of them stayed disturbed.`
  );
}

function describeRun(run) {
  const { date, cpu, versions, settings } = run;
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return (
    `${date.slice(0, 10)}, ${cpu}; measurements of ${settings.seconds} s, ` +
    `${settings.minutes} minutes in all. ${named.join(', ')}.${describeQuiet(run)}`
  );
}

/**
 * Formats the blocks between the markers of the documentation, by name.
 *
 * @param {any} results
 */
export function formatReport(results) {
  const { http } = results;
  return {
    ...(http && {
      run: describeRun(http),
      date: `Measured on ${http.date.slice(0, 16).replace('T', ' ')} UTC${http.commit === undefined ? '' : ` at commit ${http.commit}`}.`,
      workloads: join(Object.keys(workloads).map((workload) => workloadTable(http, workload))),
      figures: figureTable(http),
      notes: notesOf(http),
    }),
    ...(results.gate && { gate: gateTable(results.gate) }),
    ...(results.rules && { rules: formatRules(results.rules) }),
    aims: aimTable(results),
    limits: limitTable(results),
  };
}

/** Prints the aims first, then all the rest. */
export function printReport(results) {
  const { aims, ...others } = formatReport(results);
  console.log(`\n${join([aims, ...Object.values(others)])}\n`);
}
