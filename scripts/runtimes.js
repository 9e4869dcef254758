// npm run runtimes [-- NAME…] [--write]: the black-box suite against the service on other runtimes; `--write` puts the
// table into docs/runtimes.md. Exits with 1 where a runtime other than Deno fails a test: what Deno fails is named there.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { installPackages } from '../bench/install.js';
import { runtimes } from '../bench/runtimes.js';

const tests = ['endpoints', 'refusals', 'http', 'keys', 'dpop-modes', 'running', 'variants', 'settings-process'];
const report = 'coverage/runtimes.json';
const page = 'docs/runtimes.md';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
});
installPackages();
const names = positionals.length > 0 ? positionals : Object.keys(runtimes);
const rows = names.map((name) => {
  const { label, binary, words } = runtimes[name];
  const [version] = /\d+\.\d+\.\d+/.exec(execFileSync(binary, ['--version'], { encoding: 'utf8' })) ?? ['unknown'];
  rmSync(report, { force: true });
  spawnSync(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      ...tests.map((test) => `test/service/${test}.test.ts`),
      '--reporter=json',
      `--outputFile=${report}`,
    ],
    { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, SERVICE_RUNTIME: words.join(' ') } },
  );
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const cases = testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = cases.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
  const passed = cases.filter(({ status }) => status === 'passed').length;
  console.log(`${label} ${version}: ${passed} passed, ${failed.length} failed`);
  for (const each of failed) console.log(`  ${each}`);
  return { label: `${label} ${version}`, name, passed, failed };
});

if (values.write) {
  const table = [
    '| service on | passed | failed |',
    '| --- | --- | --- |',
    ...rows.map(
      ({ label, passed, failed }) => `| ${label} | ${passed} | ${failed.length === 0 ? '0' : failed.join('<br>')} |`,
    ),
  ].join('\n');
  const text = readFileSync(page, 'utf8');
  writeFileSync(page, text.replace(/(<!-- output: runtimes -->\n).*?(<!-- end -->)/s, `$1${table}\n$2`));
}
process.exitCode = rows.some(({ name, failed }) => name !== 'deno' && failed.length > 0) ? 1 : 0;
