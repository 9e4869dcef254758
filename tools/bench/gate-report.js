// The tables of the gate, in Markdown.

import { estimate, median } from '../shared/statistics.js';
import { gateRatios, gateServers } from './gate-servers.js';
import { showEstimate, table, thousands } from './table.js';

const middle = (list, field) => median(list.map((each) => each[field]));
const milliseconds = (value) => (value / 1000).toFixed(2);

/** Formats the figures of each server with one cached token, on one processor, with 32 connections. */
function serverTable(samples, servers) {
  const upstream = samples.upstream;
  const rows = Object.entries(servers)
    .filter(([name]) => samples[name] !== undefined)
    .map(([name, { label, passes }]) => {
      const list = samples[name];
      const added = (field) => (passes ? milliseconds(middle(list, field) - middle(upstream, field)) : '');
      return [
        label,
        thousands(middle(list, 'rate')),
        middle(list, 'cpu').toFixed(1),
        milliseconds(middle(list, 'p50')),
        milliseconds(middle(list, 'p99')),
        added('p50'),
        added('p99'),
      ];
    });
  return table(
    ['one warm token, 32 connections', 'requests/s', 'CPU µs', 'p50 ms', 'p99 ms', 'added p50', 'added p99'],
    rows,
  );
}

const ratioTable = (rounds, { servers, ratios }) =>
  table(
    ['processor time', 'ratio', '95 % interval', 'rounds'],
    Object.entries(ratios)
      .filter(([name]) => rounds[name]?.length > 0)
      .map(([name, [above, below]]) => {
        const measured = estimate(rounds[name]);
        const compared = `${servers[above].label} : ${servers[below].label}`;
        return [compared, ...showEstimate(measured), String(measured.rounds)];
      }),
  );

/**
 * All tables of one run.
 *
 * @param {any} part
 * @param {{ servers: Record<string, any>, ratios: Record<string, readonly string[]> }} compared
 */
export const formatGate = ({ samples, rounds }, compared = { servers: gateServers, ratios: gateRatios }) =>
  [ratioTable(rounds, compared), serverTable(samples, compared.servers)].join('\n\n');
