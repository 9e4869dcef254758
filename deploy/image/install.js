// node install.js SOURCE PACKED TARGET: installs the packed tarball and the optional clients of an image into a folder.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const [source = '.', packed = '.', target = '.'] = process.argv.slice(2).map((path) => resolve(path));
const { devDependencies } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
const tarball = readdirSync(packed).find((name) => /^portcullis-.*\.tgz$/.test(name));
if (tarball === undefined) throw new Error(`There is no portcullis-*.tgz in ${packed}. Run npm pack first.`);

mkdirSync(target, { recursive: true });
writeFileSync(join(target, 'package.json'), '{ "private": true, "type": "module" }\n');
const clients = ['@redis/client', 'yaml'].map((name) => `${name}@${devDependencies[name]}`);
const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
execFileSync('npm', ['install', ...flags, join(packed, tarball), ...clients], { cwd: target, stdio: 'inherit' });
copyFileSync(join(source, 'deploy/image/healthcheck.js'), join(target, 'healthcheck.js'));
