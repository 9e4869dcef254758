// npm run runtimes [-- NAME…] [--write]: the test suites of the library (adapters, fetched keys, signatures, limits) on other
// runtimes. `--write` writes the rows into docs/evidence/runtimes.md and keeps rows of other runtimes. Exits with 1 if a test fails.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { installPackages } from '../bench/install.js';
import { libraryRuntimes } from '../bench/runtimes.js';
import { table, writePart } from '../shared/page.js';

const report = `coverage/runtimes-${process.pid}.json`;
const page = 'docs/evidence/runtimes.md';
/** Milliseconds that one suite has on one runtime; it takes a minute or two. */
const bound = 600_000;

/** Columns of the library, and the groups of cases that they count. */
const columns = {
  'node:http': /^node$/,
  Express: /^express$/,
  Fastify: /^fastify$/,
  Hono: /^hono/,
  NestJS: /^nest$/,
  fetch: /^fetch$/,
  'fetched keys': /^keys/,
  signatures: /^signatures/,
  limits: /^limits/,
  example: /^example/,
};

const tests = [
  ...['admission', 'refusals', 'published-keys'].map((test) => `test/adapters/${test}.test.ts`),
  ...['signatures', 'limits'].map((test) => `test/runtimes/${test}.test.ts`),
];
/** The example and the recipe of Workers; `npm test` runs the other ones. */
const more = { workerd: ['example', 'key-cache'].map((test) => `test/runtimes/workers-${test}.test.ts`) };
const head = ['library on', ...Object.keys(columns)];
const toCells = (cases) =>
  Object.values(columns).map((pattern) => {
    const counted = cases.filter(({ ancestorTitles: [group] }) => pattern.test(group ?? ''));
    const failed = counted.filter(isFailed);
    if (counted.length === 0) return '–';
    return failed.length === 0 ? `${counted.length}` : `${counted.length - failed.length}; not ${list(failed)}`;
  });

/** A test that did not run has failed. */
const isFailed = ({ status }) => status !== 'passed';

/** Names of cases; of many the first. */
function list(cases) {
  const names = cases.slice(0, 5).map(({ fullName }) => fullName.replaceAll('|', '\\|'));
  return [...names, ...(cases.length > names.length ? [`and ${cases.length - names.length} more`] : [])].join('<br>');
}

/** Runs the suite on one runtime: the row of the table, and how many cases have failed. */
function run(name) {
  const { label, binary, words } = libraryRuntimes[name];
  const files = [...tests, ...(more[name] ?? [])];
  const [version] = /\d+[\d.-]+\d/.exec(execFileSync(binary, ['--version'], { encoding: 'utf8' })) ?? ['unknown'];
  // The runner takes a name that fits no file for a filter that finds nothing.
  for (const test of files) if (!existsSync(test)) throw new Error(`${test} is not there`);
  rmSync(report, { force: true });
  spawnSync(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', ...files, '--reporter=json', `--outputFile=${report}`],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, LIBRARY_RUNTIME: words.join(' ') },
      timeout: bound,
    },
  );
  // A run that was cut off has no report, and ends this program.
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const broken = testResults.filter(({ status, assertionResults }) => status === 'failed' && !assertionResults.length);
  if (broken.length > 0) throw new Error(`${label} ${version}: ${broken.map(({ message }) => message).join('\n')}`);
  const cases = testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = cases.filter(isFailed);
  console.log(`${head[0]} ${label} ${version}: ${cases.length - failed.length} passed, ${failed.length} failed`);
  for (const { fullName } of failed) console.log(`  ${fullName}`);
  return { cells: [`${label} ${version}`, ...toCells(cases)], failed: failed.length };
}

/** Node counts by its major version. */
const keyOf = ([label]) => /^Node \d+|^\w+/.exec(label)?.[0] ?? label;
const order = ['Node 20', 'Node 22', 'Node 24', 'Node 26', 'Bun', 'Deno', 'workerd'];

/** Replaces rows of the same runtime in a page. */
function write(row) {
  const [, before = ''] = /<!-- output: library -->\n(.*?)<!-- end -->/s.exec(readFileSync(page, 'utf8')) ?? [];
  const lines = before.split('\n').slice(2).filter(Boolean);
  const kept = lines.map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const merged = new Map([...kept, row].map((cells) => [keyOf(cells), cells]));
  const sorted = [...merged.values()].toSorted((a, b) => order.indexOf(keyOf(a)) - order.indexOf(keyOf(b)));
  writePart(page, 'output: library', table(head, sorted));
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
});
const unknown = positionals.filter((name) => !Object.hasOwn(libraryRuntimes, name));
if (unknown.length > 0) {
  throw new TypeError(`no runtime ${unknown.join()}; write some of ${Object.keys(libraryRuntimes).join()}`);
}
installPackages();
for (const name of positionals.length > 0 ? positionals : Object.keys(libraryRuntimes)) {
  const { cells, failed } = run(name);
  if (failed > 0) process.exitCode = 1;
  // Row by row: what has run is kept where a later one is cut off.
  if (values.write) write(cells);
}
