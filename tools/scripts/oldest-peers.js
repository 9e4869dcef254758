// node tools/scripts/oldest-peers.js: tests of the adapters with the oldest version of each framework that package.json
// allows, except behaviour of Express 4 itself. Works in a copy of the tree and needs access to npm. Exits with 1 if a
// test fails.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeFolder } from '../shared/folder.js';

const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
/** The packages of each framework that have one version. */
const frameworks = {
  express: ['express'],
  fastify: ['fastify'],
  hono: ['hono'],
  '@nestjs/common': ['common', 'core', 'platform-express', 'platform-fastify'].map((name) => `@nestjs/${name}`),
};
/** Tests of types, of a validator that needs a newer Fastify, and of the tarball. */
const others = ['inference', 'editor', 'two-copies'];
/** Excludes handlers that reject: Express 4 ignores promises. And `some` of Hono, which drops responses before 4.13.12. */
const counted = '^(?!express\\b.* /rejects(?!-protect)|hono: some\\()';
const tests = readdirSync('test/adapters')
  .filter((name) => name.endsWith('.test.ts') && !others.includes(name.replace('.test.ts', '')))
  .map((name) => `test/adapters/${name}`);

const folder = makeFolder('peers');
const tree = join(folder, 'tree');
const parts = ['src', 'test', 'tools', 'package.json', 'tsconfig.json', 'vitest.config.ts'];
const files = execFileSync('git', ['ls-files', ...parts], { encoding: 'utf8' });
for (const path of files.trim().split('\n')) cpSync(path, join(tree, path));
const modules = join(tree, 'node_modules');
mkdirSync(join(modules, '@nestjs'), { recursive: true });
for (const place of ['', '@nestjs']) {
  for (const name of readdirSync(join('node_modules', place))) {
    if (name !== '@nestjs') symlinkSync(resolve('node_modules', place, name), join(modules, place, name));
  }
}
for (const [peer, names] of Object.entries(frameworks)) {
  const [oldest] = /\d+\.\d+\.\d+/.exec(peerDependencies[peer]) ?? [];
  const place = join(folder, peer.replace(/\W/g, '-'));
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), '{"private":true}');
  const more = peer === '@nestjs/common' ? ['reflect-metadata@0.2.2', 'rxjs@7.8.2'] : [];
  const wanted = [...names.map((name) => `${name}@${oldest}`), ...more];
  execFileSync('npm', ['install', '--no-audit', '--no-fund', ...wanted], { cwd: place, stdio: 'ignore' });
  for (const name of [...names, ...(more.length > 0 ? ['reflect-metadata'] : [])]) {
    rmSync(join(modules, name));
    symlinkSync(join(place, 'node_modules', name), join(modules, name));
  }
  console.log(wanted.join(' '));
}
const { status } = spawnSync('npx', ['vitest', 'run', ...tests, '-t', counted], { cwd: tree, stdio: 'inherit' });
process.exitCode = status ?? 1;
