// The tables of the gate, in Markdown.
import { gateRatios, gateServers } from './gate-servers.js';
import { estimate, median } from './statistics.js';
import { table } from './table.js';

const middle = (list, field) => median(list.map((each) => each[field]));
const milliseconds = (value) => (value / 1000).toFixed(2);
const thousands = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ');

/** What each server does with one token that it has seen before, on one processor, with 32 connections. */
function serverTable(samples) {
  const upstream = samples.upstream;
  const rows = Object.entries(gateServers)
    .filter(([name]) => samples[name] !== undefined)
    .map(([name, { label, passes, tunnels }]) => {
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
        tunnels ? thousands(middle(list, 'mebibytes')) : '',
        tunnels ? middle(list, 'tunnelCpu').toFixed(0) : '',
      ];
    });
  return table(
    [
      ...['one warm token, 32 connections', 'requests/s', 'CPU µs', 'p50 ms', 'p99 ms', 'added p50', 'added p99'],
      ...['WebSocket MiB/s', 'CPU µs a MiB'],
    ],
    rows,
  );
}

const ratioTable = (rounds) =>
  table(
    ['processor time', 'ratio', '95 % interval', 'rounds'],
    Object.entries(gateRatios)
      .filter(([name]) => rounds[name].length > 0)
      .map(([name, [above, below]]) => {
        const { value, low, high, rounds: count } = estimate(rounds[name]);
        const [shown, ...ends] = [value, low, high].map((each) => each.toFixed(2));
        return [`${gateServers[above].label} : ${gateServers[below].label}`, shown, ends.join(' … '), String(count)];
      }),
  );

/** All tables of one run. */
export const formatGate = ({ samples, rounds }) => [ratioTable(rounds), serverTable(samples)].join('\n\n');
