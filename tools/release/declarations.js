// The public declarations of a release, read from its reference page, and their differences.

/**
 * Reads the declarations of a reference page by entry point and name.
 *
 * @param {string} page
 * @returns {Map<string, readonly string[]>} lines without comments and blank lines
 */
export function readDeclarations(page) {
  const declarations = new Map();
  let entry = '';
  for (const section of page.split(/^(?=##+ )/m)) {
    const [, level, title] = /^(##+) `?([^`\n]+)`?\n/.exec(section) ?? [];
    if (level === '##') entry = title;
    const [, code] = /^```ts\n([\s\S]*?)^```/m.exec(section) ?? [];
    if (level !== '###' || code === undefined) continue;
    const lines = code
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .split('\n')
      .map((line) => line.replace(/\s*\/\/.*$/, '').trimEnd())
      .filter((line) => line !== '');
    declarations.set(`${entry}: ${title}`, lines);
  }
  return declarations;
}

/** @typedef {{ name: string, kind: 'added' | 'removed' | 'changed', removed: readonly string[], added: readonly string[] }} Difference */

/**
 * Compares the declarations of two releases.
 *
 * @param {ReadonlyMap<string, readonly string[]>} before
 * @param {ReadonlyMap<string, readonly string[]>} after
 * @returns {readonly Difference[]}
 */
export function compareDeclarations(before, after) {
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return names
    .map((name) => {
      const [old, current] = [before.get(name), after.get(name)];
      const kind = old === undefined ? 'added' : current === undefined ? 'removed' : 'changed';
      return /** @type {Difference} */ ({
        name,
        kind,
        removed: (old ?? []).filter((line) => !current?.includes(line)),
        added: (current ?? []).filter((line) => !old?.includes(line)),
      });
    })
    .filter(({ kind, removed, added }) => kind !== 'changed' || removed.length + added.length > 0);
}

const isOptional = (line) => /^\s*(?:readonly )?[\w$]+\?:/.test(line);

/**
 * Reports whether code that compiled before may not compile after. New declarations and new optional members are compatible.
 *
 * @param {Difference} difference
 */
export const mayBreak = ({ kind, removed, added }) =>
  kind === 'removed' || (kind === 'changed' && (removed.length > 0 || !added.every(isOptional)));

/**
 * Formats differences like a patch, those that may break first.
 *
 * @param {readonly Difference[]} differences
 */
export function formatDifferences(differences) {
  const sorted = differences.toSorted((a, b) => Number(mayBreak(b)) - Number(mayBreak(a)));
  return sorted
    .map((difference) => {
      const { name, kind, removed, added } = difference;
      const head = `${mayBreak(difference) ? 'MAY BREAK' : 'compatible'}  ${name} (${kind})`;
      const lines =
        kind === 'changed' ? [...removed.map((line) => `- ${line}`), ...added.map((line) => `+ ${line}`)] : [];
      return [head, ...lines.map((line) => `    ${line}`)].join('\n');
    })
    .join('\n');
}
