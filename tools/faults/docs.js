// The place of the table in the documentation.
import { readFileSync, writeFileSync } from 'node:fs';

const page = new URL('../../docs/operations.md', import.meta.url);
const place = /<!-- output: faults -->\n[\s\S]*?<!-- end -->/;

/** Writes what a whole run has printed into its place. */
export function writeOutput(text) {
  const before = readFileSync(page, 'utf8');
  if (!place.test(before)) throw new Error('docs/operations.md has no place for the output of faults');
  writeFileSync(
    page,
    before.replace(place, () => `<!-- output: faults -->\n${text.trimEnd()}\n<!-- end -->`),
  );
}
