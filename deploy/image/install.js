// node install.js SOURCE PACKED TARGET: installs the packed tarball and the optional clients of an image into a folder.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const [source = '.', packed = '.', target = '.'] = process.argv.slice(2).map((path) => resolve(path));
const { devDependencies } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
const tarball = readdirSync(packed).find((name) => /^portcullis-.*\.tgz$/.test(name));
if (tarball === undefined) throw new Error(`There is no portcullis-*.tgz in ${packed}. Run npm pack first.`);

mkdirSync(target, { recursive: true });
/** The SDK that traces.js loads. */
const sdk = {
  '@opentelemetry/api': '1.9.1',
  '@opentelemetry/exporter-trace-otlp-proto': '0.223.1',
  '@opentelemetry/resources': '2.12.1',
  '@opentelemetry/sdk-trace-node': '2.12.0',
};
writeFileSync(join(target, 'package.json'), '{ "private": true, "type": "module" }\n');
const clients = ['@redis/client', '@bufbuild/cel'].map((name) => [name, devDependencies[name]]);
const more = [...clients, ...Object.entries(sdk)].map(([name, version]) => `${name}@${version}`);
const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
execFileSync('npm', ['install', ...flags, join(packed, tarball), ...more], { cwd: target, stdio: 'inherit' });
for (const name of ['healthcheck.js', 'traces.js'])
  copyFileSync(join(source, 'deploy/image', name), join(target, name));
