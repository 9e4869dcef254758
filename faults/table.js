// The table: Markdown, so that it can stand in the documentation as it is printed.
import { availableParallelism } from 'node:os';

const columns = ['fault', 'sent', 'wrong', 'unanswered', '5xx', 'p99', 'memory', 'fetches', 'recovery', ''];

/** What goes before the rows: the machine, the load, the head of the table. */
export function formatHead({ capacity, rate, p50, p99, pinned }) {
  const machine = `Node ${process.versions.node}, ${availableParallelism()} processors${pinned ? ', one of them for the service' : ''}`;
  return (
    `${machine}. It answers ${capacity} requests a second at full rate; the steady load is ${rate} a second, ` +
    `undisturbed p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms.\n\n` +
    `| ${columns.join(' | ')} |\n|${columns.map(() => ' --- |').join('')}\n`
  );
}

/** The title of a row, which may depend on the run. */
export function titleOf({ title }, run) {
  return typeof title === 'function' ? title(run) : title;
}

/** One row; `p99` of the undisturbed load in ms is what its own is held against. */
export function formatRow(row, { p99 }) {
  const cells = [
    `${row.title} (\`${row.name}\`)`,
    row.sent,
    row.wrong,
    row.unanswered,
    row.unexplained,
    row.p99 === undefined ? '' : `${row.p99.toFixed(1)} ms, × ${(row.p99 / p99).toFixed(1)}`,
    `+${row.memory.toFixed(0)} MiB`,
    `${row.fetches} of ${row.fetchBound}`,
    row.recovery === undefined ? '' : `${row.recovery.toFixed(1)} s`,
    [...row.broken.map((text) => `**BROKEN: ${text}**`), ...row.notes].join('; '),
  ];
  return `| ${cells.join(' | ')} |\n`;
}
