// Counts the banned expressions of `patterns.js`, lists them, and lowers the counts that `test/prose.test.ts` allows.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  baselineFile,
  countByFolder,
  findInFile,
  folderOf,
  formatBaseline,
  listFiles,
  readBaseline,
} from './reader.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    write: { type: 'boolean' },
    changed: { type: 'string' },
    since: { type: 'string', default: 'main' },
    help: { type: 'boolean', short: 'h' },
  },
});

if (values.help) {
  console.log(`Usage: node tools/prose/main.js [PATH…] [--changed REF] [--write]

  PATH…            lists the banned expressions of files and folders
  --changed REF    lists the banned expressions on lines changed since a commit (usually main)
  --write          lowers the baseline of folders changed since main (--since REF); fails if a count rose`);
  process.exit(0);
}

/** Lines added or changed since a commit, by file. @param {string} ref */
function readChangedLines(ref) {
  const base = execFileSync('git', ['merge-base', ref, 'HEAD'], { encoding: 'utf8' }).trim();
  const diff = execFileSync('git', ['diff', '--unified=0', base], { encoding: 'utf8', maxBuffer: 2 ** 28 });
  /** @type {Map<string, Set<number>>} */
  const changed = new Map();
  let lines = new Set();
  for (const line of diff.split('\n')) {
    const file = /^\+\+\+ b\/(.*)$/.exec(line)?.[1];
    if (file !== undefined) {
      lines = new Set();
      changed.set(file, lines);
    }
    const [, from, count = '1'] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    for (let index = 0; from !== undefined && index < Number(count); index += 1) lines.add(Number(from) + index);
  }
  return changed;
}

const findings = listFiles().flatMap(findInFile);
const print = (found) => {
  for (const { file, line, kind, found: words, write } of found)
    console.log(`${file}:${line} ${kind} "${words}": write ${write}`);
  console.log(`${found.length} found`);
};

const counts = countByFolder(findings);
const baseline = readBaseline();

if (values.changed !== undefined) {
  const changed = readChangedLines(values.changed);
  print(findings.filter(({ file, line }) => changed.get(file)?.has(line)));
} else if (positionals.length > 0) {
  print(
    findings.filter(({ file }) =>
      positionals.some((path) => file === path || file.startsWith(path.replace(/\/?$/, '/'))),
    ),
  );
} else if (values.write) {
  const raised = Object.keys(counts).filter((folder) => counts[folder] > (baseline[folder] ?? 0));
  if (raised.length > 0) {
    for (const folder of raised) console.error(`${folder}: ${counts[folder]}, at most ${baseline[folder] ?? 0}`);
    process.exit(1);
  }
  // Only folders of this branch: another branch may be about to merge text into the others.
  const changed = new Set([...readChangedLines(values.since).keys()].map(folderOf));
  for (const folder of Object.keys(baseline)) if (changed.has(folder)) baseline[folder] = counts[folder] ?? 0;
  writeFileSync(baselineFile, formatBaseline(baseline));
} else {
  for (const [folder, count] of Object.entries(counts))
    console.log(`${String(count).padStart(5)}  ${folder} (at most ${baseline[folder] ?? 0})`);
  console.log(`all: ${findings.length}`);
}
