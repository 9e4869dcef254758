// node tools/scripts/node-versions.js [VERSION…] [--overwrite-buffers]: tests on each supported version of Node, except the current one,
// which `npm test` uses. On the newest: the library, the service and all that handles connections; on those between: what
// calls Node's sockets, HTTP and crypto. With `--overwrite-buffers`: that and all that handles connections, on the oldest and
// the newest version, while the buffers of Node are overwritten (test/README.md). Exits with 1 if a test fails.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { installPackages } from '../bench/install.js';
import { nodeVersions } from '../bench/runtimes.js';

const calls = [
  ...['jose', 'http', 'outbound', 'keys', 'dpop'].map((name) => `core/${name}`),
  'runtimes',
  'server/listener',
  'server/http',
  'adapters',
  'isolation',
];
const connections = ['gate', 'catalogue'];
const products = ['core', 'providers', 'explain', 'testing', 'server', 'serve'];
/** Milliseconds for one version; it takes two to nine minutes. */
const bound = 1_200_000;
const here = process.versions.node.split('.')[0];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'overwrite-buffers': { type: 'boolean', default: false } },
});
const overwrites = values['overwrite-buffers'];
const all = Object.keys(nodeVersions);
const usual = overwrites ? [all[0], all.at(-1)] : all.filter((version) => version !== here);
const versions = positionals.length > 0 ? positionals : usual;
const unknown = versions.filter((version) => !Object.hasOwn(nodeVersions, version ?? ''));
if (unknown.length > 0) throw new TypeError(`no version ${unknown.join()}; write some of ${all.join()}`);
/** @type {(version: string | undefined) => readonly string[]} */
const listFolders = (version) => {
  const isNewest = version === all.at(-1);
  if (isNewest && !overwrites) return [...calls, ...connections, ...products];
  return [...calls, ...(overwrites ? connections : ['gate/reverse-proxy'])];
};

installPackages();
/** Names of failed tests, repeated at the end: the output of other versions follows them. */
const failed = [];
for (const version of versions) {
  const binary = nodeVersions[version];
  console.log(`\nNode ${version}${overwrites ? ', buffers overwritten' : ''}`);
  const startedAt = performance.now();
  const { status } = spawnSync(
    binary,
    ['node_modules/vitest/vitest.mjs', 'run', '--bail=10', ...listFolders(version).map((name) => `test/${name}`)],
    {
      stdio: 'inherit',
      timeout: bound,
      env: {
        ...process.env,
        PATH: `${dirname(binary)}:${process.env.PATH}`,
        ...(overwrites && { OVERWRITE_BUFFERS: '1' }),
      },
    },
  );
  console.log(`Node ${version} took ${Math.round((performance.now() - startedAt) / 1000)} s`);
  if (status === 0) continue;
  process.exitCode = 1;
  failed.push(`Node ${version} failed:`, readFileSync('coverage/failed.txt', 'utf8'));
}
if (failed.length > 0) console.log(`\n${failed.join('\n')}`);
