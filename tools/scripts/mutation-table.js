// Writes the scores and the survivors of the last runs of `npm run mutation` into docs/evidence/mutation.md. Keeps the
// reasons, which are written by hand; fails if a survivor has no reason, or if a source has changed since its report.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

const page = 'docs/evidence/mutation.md';
const reports = 'reports/mutation';
const folders = ['jose', 'http', 'outbound', 'dpop', 'keys', 'token', 'policy', 'refusal'];

const names = readdirSync(reports).filter((name) => name.endsWith('.json') && !name.endsWith('-incremental.json'));
const files = Object.assign({}, ...names.map((name) => JSON.parse(readFileSync(`${reports}/${name}`, 'utf8')).files));
const pathsOf = (folder) => readdirSync(`src/${folder}`).map((name) => `src/${folder}/${name}`);
for (const path of folders.flatMap(pathsOf)) {
  const source = readFileSync(path, 'utf8');
  if (!/^(?:export )?(?:async )?(?:const|function|class) /m.test(source)) files[path] = { source, mutants: [] }; // types
  if (files[path]?.source !== source) throw new Error(`${path} has changed, or has no report`);
}

const detected = ['Killed', 'Timeout'];
const undetected = ['Survived', 'NoCoverage'];
function formatScore(name, paths) {
  const mutants = paths.flatMap((path) => files[path].mutants);
  const count = (statuses) => mutants.filter(({ status }) => statuses.includes(status)).length;
  const [noticed, survived] = [count(detected), count(undetected)];
  const score = ((100 * noticed) / (noticed + survived)).toFixed(1);
  return `| ${name} | ${noticed + survived} | ${noticed} | ${survived} | ${score} % |`;
}

/** Formats a mutant as one line of a table. */
function formatChange(source, { location: { start, end }, replacement }) {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  lines.push(lines.pop().slice(0, end.column - 1));
  lines.unshift(lines.shift().slice(start.column - 1));
  const show = (text) => `\`${text.replace(/\s+/g, ' ').replaceAll('`', 'ˋ').replaceAll('|', '¦')}\``;
  return `${show(lines.join(' '))} → ${show(replacement)}`;
}

const text = readFileSync(page, 'utf8');
const reasons = new Map();
for (const [, path, change, reason] of text.matchAll(/^\| `([^`:]+):\d+` \| (.*) \| ([^|]*) \|$/gm)) {
  reasons.set(path + change, [...(reasons.get(path + change) ?? []), reason]);
}
const rows = folders.flatMap(pathsOf).flatMap((path) => {
  const survivors = files[path].mutants.filter(({ status }) => undetected.includes(status));
  survivors.sort((a, b) => a.location.start.line - b.location.start.line);
  return survivors.map((mutant) => {
    const change = formatChange(files[path].source, mutant);
    return `| \`${path}:${mutant.location.start.line}\` | ${change} | ${reasons.get(path + change)?.shift() ?? ''} |`;
  });
});
const scores = folders.map((folder) => formatScore(`\`src/${folder}\``, pathsOf(folder)));
const total = formatScore('all', folders.flatMap(pathsOf));

const fill = (into, name, table) => {
  const place = new RegExp(`(<!-- ${name} -->\n(?:.*\n){2})[^]*?(?=<!-- end -->)`);
  return into.replace(place, (_, head) => `${head}${table.join('\n')}\n`);
};
writeFileSync(page, fill(fill(text, 'scores', [...scores, total]), 'survivors', rows));
const unexplained = rows.filter((row) => row.endsWith('|  |')).length;
if (unexplained > 0) throw new Error(`${unexplained} survivors have no reason in ${page}`);
