// What a full run leaves behind: bench/results.json, the tables of docs/performance.md, the chart.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { formatChart } from './chart.js';
import { formatReport } from './report.js';
import { hasRuntime, runtimes } from './runtimes.js';

const file = (path) => new URL(path, import.meta.url);
const packages = ['express', 'express-oauth2-jwt-bearer', 'fastify', '@fastify/jwt', 'get-jwks', 'hono', 'jose'];
const programs = {
  HAProxy: ['/usr/sbin/haproxy', '-v'],
  Apache: ['/usr/sbin/apache2', '-v'],
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
  return { date: new Date().toISOString(), cpu: `${availableParallelism()} × ${cpus()[0].model}`, versions };
}

/** Writes results, tables and chart. */
export function publish(results) {
  writeFileSync(file('results.json'), `${JSON.stringify(results, rounded, 1)}\n`);
  const page = file('../docs/performance.md');
  const blocks = formatReport(results);
  const text = readFileSync(page, 'utf8').replace(
    /<!-- bench: (\w+) -->\n[\s\S]*?<!-- end -->/g,
    // The profile is written by its own run.
    (all, name) => (name in blocks ? `<!-- bench: ${name} -->\n${blocks[name]}\n<!-- end -->` : all),
  );
  writeFileSync(page, text);
  writeFileSync(file('../docs/performance.svg'), formatChart(results));
}

/** Four digits are more than a run can tell apart. */
function rounded(_, value) {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
