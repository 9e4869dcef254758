// Tables and generated parts of Markdown pages.
import { readFileSync, writeFileSync } from 'node:fs';

/** Formats a row of a table. */
export const row = (/** @type {readonly string[]} */ cells) => `| ${cells.join(' | ')} |`;

/**
 * Formats a table.
 *
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
export const table = (head, rows) => [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');

/** Replaces the part of a page from the comment `<!-- mark -->` to `<!-- end -->`. */
export function writePart(page, mark, text) {
  const before = readFileSync(page, 'utf8');
  const place = new RegExp(`(<!-- ${mark} -->\n)[^]*?(<!-- end -->)`);
  if (!place.test(before)) throw new Error(`${page} has no place "${mark}"`);
  writeFileSync(
    page,
    before.replace(place, (_, start, end) => `${start}${text.trimEnd()}\n${end}`),
  );
}
