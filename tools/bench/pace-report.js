// The table of the fixed rates, in Markdown.
import { servers } from './servers.js';
import { table } from './table.js';
import { workloads } from './workloads.js';

const thousands = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ');

/** `from due` counts from when a request was due, `from sent` from when it was sent; milliseconds. */
export const formatPace = ({ rows }) =>
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
