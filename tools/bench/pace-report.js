// The tables of the fixed rates, in Markdown.
import { estimate, median } from '../shared/statistics.js';
import { paceRatio } from './aims.js';
import { gateServers } from './gate-servers.js';
import { servers } from './servers.js';
import { showEstimate, table, thousands } from './table.js';
import { workloads } from './workloads.js';

/** `from due` counts from when a request was due, `from sent` from when it was sent; milliseconds. */
export const formatPace = ({ rows, proxies }) =>
  [formatRates(rows), ...(proxies === undefined ? [] : [formatProxies({ proxies })])].join('\n\n');

const formatRates = (rows) =>
  table(
    ['workload, server', 'of capacity', 'requests/s', 'p50', 'p99', 'p99.9', 'p99 from sent', 'lost', 'longest pause'],
    rows.map(({ name, workload, share, wanted, due, sent, lost, longestPause }) => [
      `${workloads[workload].label}, ${servers[name].label}`,
      `${share * 100} %`,
      thousands(wanted),
      ...[due.p50, due.p99, due.p999, sent.p99].map((value) => value.toFixed(2)),
      String(lost),
      longestPause.toFixed(1),
    ]),
  );

/** The 99th percentiles of the proxies, and their ratios to nginx. */
function formatProxies(part) {
  return table(
    ['proxy, one warm token', 'requests/s', 'p99, ms', ': nginx', '95 % interval', 'rounds'],
    part.proxies.map(({ name, rate, p99 }) => [
      gateServers[name].label,
      thousands(rate),
      median(p99).toFixed(2),
      ...(name === 'nginx-plain' ? ['', ''] : showEstimate(estimate(paceRatio(part, name)))),
      String(p99.length),
    ]),
  );
}
