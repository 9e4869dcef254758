// Tables in Markdown.

/** The first column is text, the others are figures. */
export function table(head, rows) {
  if (rows.length === 0) return '';
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length), 3));
  const line = (cells) =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** A whole number, in groups of three digits. */
export const thousands = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ');

/** A number, or an empty cell if there is none. */
export const decimals = (value, places) => (value === undefined ? '' : value.toFixed(places));

/** Two cells: the value of an estimate, and its interval. */
export const showEstimate = ({ value, low, high }) => [value.toFixed(2), `${low.toFixed(2)} … ${high.toFixed(2)}`];
