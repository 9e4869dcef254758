// The table, in Markdown for the documentation.
import { row, table } from '../shared/page.js';
import { pinned, processorCount } from '../shared/processes.js';

const columns =
  'fault|load per s|sent|wrong|no response|5xx|p99 (undisturbed), ms|memory|fetches|recovery|remarks'.split('|');

/** Formats the lines before the rows: the host, and the service on it. */
export function formatHead({ capacity, rate, p50, p99 }) {
  const machine = `${processorCount} processors${pinned ? ', one of them for the service' : ''}`;
  return (
    `Node ${process.versions.node}, ${machine}. Before the first row its maximum was ${capacity} requests a second; at  ` +
    `${rate} a second, p50 was ${p50.toFixed(1)} ms and p99 ${p99.toFixed(1)} ms.\n\n` +
    `${table(columns, [])}\n`
  );
}

/** The title of a row, which may depend on the run. */
export function titleOf({ title }, run) {
  return typeof title === 'function' ? title(run) : title;
}

/**
 * One row; of one that failed, little is known.
 *
 * @param {{ name: string, title: string, figures?: any, notes: string[], broken: string[] }} row
 */
export function formatRow({ name, title, figures, notes, broken }) {
  const cells = [
    `${title} (\`${name}\`)`,
    ...(figures === undefined ? columns.slice(2).map(() => '') : format(figures)),
  ];
  const remarks = [...broken.map((text) => `**BROKEN: ${text}**`), ...notes].join('; ');
  return `${row([...cells, remarks])}\n`;
}

function format({ undisturbed, ...figures }) {
  const { sent, wrong, unanswered, unexplained, p99, memory, fetches, fetchBound, recovery } = figures;
  return [
    undisturbed.rate,
    sent,
    wrong,
    unanswered,
    unexplained,
    `${p99?.toFixed(1) ?? ''} (${undisturbed.p99.toFixed(1)})`,
    `+${memory.toFixed(0)} MiB`,
    `${fetches} of ${fetchBound}`,
    recovery === undefined ? '' : `${recovery.toFixed(1)} s`,
  ];
}

/** Formats the lines after the rows. */
export function formatTotal({ rows, seconds, broken }) {
  return `\n${rows} faults in ${seconds} s; ${broken === 0 ? 'nothing was broken' : `${broken} broken`}\n`;
}
