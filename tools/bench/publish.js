// Results of a run with --write: its part of tools/bench/results.json, and the generated tables.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { formatReport } from './report.js';
import { hasRuntime, runtimes } from './runtimes.js';

const file = (path) => new URL(path, import.meta.url);
const packages = ['express', 'express-oauth2-jwt-bearer', 'fastify', '@fastify/jwt', 'get-jwks', 'hono', 'jose'];
const programs = {
  HAProxy: ['/usr/sbin/haproxy', '-v'],
  wrk: ['/usr/bin/wrk', '-v'],
};

const firstNumber = (text) => text.match(/\d+\.\d+(\.\d+)?/)?.[0] ?? 'unknown';

/** Date, processor and versions of a run. */
export function describeMachine() {
  const ask = (program, args) => firstNumber(spawnSync(program, args, { encoding: 'utf8' }).stdout ?? '');
  const versions = {};
  for (const [name, { label, binary }] of Object.entries(runtimes)) {
    if (hasRuntime(name)) versions[label] = [versions[label], ask(binary, ['--version'])].filter(Boolean).join(', ');
  }
  for (const name of packages) {
    const about = file(`node_modules/${name}/package.json`);
    if (existsSync(about)) versions[name] = JSON.parse(readFileSync(about, 'utf8')).version;
  }
  for (const [name, [program, ...args]] of Object.entries(programs)) {
    if (existsSync(program)) versions[name] = ask(program, args);
  }
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).stdout?.trim();
  return {
    date: new Date().toISOString(),
    ...(commit && { commit }),
    cpu: `${availableParallelism()} × ${cpus()[0].model}`,
    versions,
  };
}

const resultsFile = file('results.json');
const pages = ['../../docs/performance.md', '../../docs/evidence/performance-tables.md'].map(file);

/** Everything that was kept, by the bench that measured it. */
export const readResults = () => JSON.parse(readFileSync(resultsFile, 'utf8'));

/** Replaces the results of one bench, and writes the pages. */
export function savePart(name, part) {
  writeFileSync(resultsFile, `${JSON.stringify({ ...readResults(), [name]: part }, rounded, 1)}\n`);
  writePages();
}

/** Writes every table from what was kept. */
export function writePages() {
  const results = readResults();
  const blocks = formatReport(results);
  for (const page of pages) {
    const text = readFileSync(page, 'utf8').replace(/<!-- bench: ([\w-]+) -->\n[\s\S]*?<!-- end -->/g, (all, name) =>
      name in blocks ? `<!-- bench: ${name} -->\n${blocks[name]}\n<!-- end -->` : all,
    );
    writeFileSync(page, text);
  }
}

/** Four digits are more than a run can tell apart. */
function rounded(_, value) {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
