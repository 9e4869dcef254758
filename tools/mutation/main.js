// npm run mutation -- FOLDER [--write]: changes src/FOLDER in one place at a time, runs its tests (vitest.mutation.config.ts),
// and prints the score and the survivors. With --write, replaces the row and the survivors of the folder in
// docs/evidence/mutation.md. Reasons in that page are written by hand, and stay.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installPackages } from '../bench/install.js';

const page = 'docs/evidence/mutation.md';
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false }, report: { type: 'string' } },
});
const [part] = positionals;
if (part === undefined) throw new Error('Name a folder of src, such as core/policy.');
process.env.MUTATE = part;
const report = values.report ?? `reports/mutation/${part.replaceAll('/', '-')}.json`;

if (values.report === undefined) {
  installPackages(fileURLToPath(new URL('.', import.meta.url)));
  const name = '@stryker-mutator/core'; // the compiler does not look for what is installed here
  const { Stryker } = await import(name);
  await new Stryker({
    mutate: [`src/${part}${part.endsWith('.ts') ? '' : '/*.ts'}`, '!src/**/*redis*.ts'],
    testRunner: 'vitest',
    vitest: { configFile: 'vitest.mutation.config.ts' },
    tsconfigFile: 'none', // rewriting one needs the programming interface of an older compiler
    coverageAnalysis: 'perTest',
    concurrency: 1,
    timeoutMS: 5000,
    timeoutFactor: 3,
    tempDirName: '.stryker-tmp',
    ignorePatterns: ['coverage', 'reports', 'build', 'dist', 'site', 'deploy', 'examples'],
    reporters: ['json', 'progress-append-only'],
    jsonReporter: { fileName: report },
  }).runMutationTest();
}

/** @type {{ files: Record<string, { source: string, mutants: { status: string, replacement: string, location: any }[] }> }} */
const { files } = JSON.parse(readFileSync(report, 'utf8'));
const text = readFileSync(page, 'utf8');
const reasons = new Map();
for (const [, path, change, reason] of text.matchAll(/^\| `([^`:]+):\d+` \| (.*) \| ([^|]*) \|$/gm)) {
  reasons.set(path + change, reason);
}

/** The change of a mutant, as a cell of a table. */
function formatChange(source, { location: { start, end }, replacement }) {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  lines.push(lines.pop().slice(0, end.column - 1));
  lines.unshift(lines.shift().slice(start.column - 1));
  const show = (code) => {
    const line = code.replace(/\s+/g, ' ').replaceAll('`', 'ˋ').replaceAll('|', '¦');
    return `\`${line.length > 160 ? `${line.slice(0, 160)}…` : line}\``;
  };
  const changed = lines.join('\n');
  // A short literal is not found without its line.
  const shown = changed.length < 8 ? `${changed} in ${source.split('\n')[start.line - 1].trim()}` : changed;
  return `${show(shown)} → ${show(replacement)}`;
}

const counts = { Killed: 0, Timeout: 0, Survived: 0, NoCoverage: 0 };
const survivors = Object.entries(files).flatMap(([path, { source, mutants }]) => {
  for (const { status } of mutants) if (status in counts) counts[status]++;
  return mutants
    .filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
    .toSorted((a, b) => a.location.start.line - b.location.start.line)
    .map((mutant) => {
      const change = formatChange(source, mutant);
      const reason = reasons.get(path + change);
      return { row: `| \`${path}:${mutant.location.start.line}\` | ${change} | ${reason ?? ''} |`, reason };
    });
});
const detected = counts.Killed + counts.Timeout;
const score = ((100 * detected) / (detected + survivors.length)).toFixed(1);
const explained = survivors.filter(({ reason }) => reason !== undefined);
const row = `| \`${part}\` | ${detected + survivors.length} | ${detected} | ${explained.length} | ${survivors.length - explained.length} | ${score} % |`;
console.log([...survivors.map(({ row: line }) => line), row].join('\n'));

if (values.write) {
  const isOfPart = (line) =>
    [`${part}\``, `src/${part}/`, `src/${part}:`].some((start) => line.startsWith(`| \`${start}`));
  /** Replaces the lines of the folder in a table, which stays sorted. */
  const fill = (into, name, rows) =>
    into.replace(new RegExp(`(<!-- ${name} -->\n(?:.*\n){2})([^]*?)(?=<!-- end -->)`), (_, head, old) => {
      const others = old.split('\n').filter((line) => line !== '' && !isOfPart(line));
      return (
        head +
        [...others, ...rows]
          .toSorted()
          .map((line) => `${line}\n`)
          .join('')
      );
    });
  const withScores = fill(text, 'scores', [row]);
  writeFileSync(
    page,
    fill(
      withScores,
      'survivors',
      explained.map(({ row: line }) => line),
    ),
  );
}
