// The table of the fixed rate, in Markdown.
import { estimate, median } from '../shared/statistics.js';
import { paceRatio } from './aims.js';
import { gateServers } from './gate-servers.js';
import { showEstimate, table, thousands } from './table.js';

/** The 99th percentiles of the proxies, and their ratios to nginx. */
export const formatPace = (part) =>
  table(
    ['proxy, one warm token', 'requests/s', 'p99, ms', ': nginx', '95 % interval', 'rounds'],
    part.proxies.map(({ name, rate, p99 }) => [
      gateServers[name].label,
      thousands(rate),
      median(p99).toFixed(2),
      ...(name === 'nginx-plain' ? ['', ''] : showEstimate(estimate(paceRatio(part, name)))),
      String(p99.length),
    ]),
  );
