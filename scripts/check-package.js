// Packs the package and treats the tarball as a stranger would: lints it, installs it in an empty folder, runs it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const maxPackages = 20;

/** A token of the test kit before a resource server; what listens names the optional package, which is left out here. */
const useTestKit = `
  import { createResourceServer } from 'portcullis';
  import { createTestIssuer } from 'portcullis/testing';
  const issuer = createTestIssuer();
  const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
  const headers = new Headers(issuer.headers({ sub: 'alice' }));
  const { claims } = await server.authorize({ method: 'GET', url: 'http://localhost/', headers });
  const refused = await issuer.listen().catch((error) => error.message);
  if (claims.sub !== 'alice' || !String(refused).includes('@peculiar/x509')) throw new Error('portcullis/testing does not work');
  console.log('portcullis/testing: a token is accepted; listen() without its optional package says what to install');
`;

/** Every entry point, where no optional peer is installed: one that is made of a peer has to ask for it by name. */
const importAll = `
  const [entries, peers] = process.argv.slice(1).map((names) => names.split(' '));
  const asking = [];
  for (const name of entries) {
    const error = await import(name).then(() => undefined, (refused) => refused);
    const peer = peers.find((each) => error?.message.includes(each));
    if (error !== undefined && (error.code !== 'ERR_MODULE_NOT_FOUND' || peer === undefined)) throw error;
    if (error !== undefined) asking.push(name + ' asks for ' + peer);
  }
  console.log('without any framework: ' + (entries.length - asking.length) + ' entry points load; ' + asking.join(', '));
`;

const run = (command, args, cwd) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

const folder = mkdtempSync(join(tmpdir(), 'portcullis-package-'));
try {
  const [packed] = JSON.parse(run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], '.'));
  const tarball = join(folder, packed.filename);
  console.log(`packed: ${packed.entryCount} files, ${Math.round(packed.unpackedSize / 1024)} KiB unpacked`);

  console.log(run('npx', ['publint', '--strict', tarball], '.').trim());
  console.log(run('npx', ['attw', tarball, '--profile', 'esm-only', '--no-emoji'], '.').trim());

  writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
  run('npm', ['install', '--omit=optional', tarball], folder);
  const help = run('npx', ['portcullis', '--help'], folder);
  if (!help.includes('Usage: portcullis')) throw new Error('portcullis --help does not print its usage');
  console.log('installed in an empty folder: npx portcullis --help answers');
  const { version } = JSON.parse(readFileSync(resolve('package.json'), 'utf8'));
  if (run('npx', ['portcullis', '--version'], folder).trim() !== version) throw new Error('--version does not fit');

  console.log(run('node', ['--input-type=module', '--eval', useTestKit], folder).trim());

  const manifest = JSON.parse(readFileSync(resolve('package.json'), 'utf8'));
  const entries = Object.keys(manifest.exports)
    .filter((subpath) => subpath !== './package.json')
    .map((subpath) => `portcullis${subpath.slice(1)}`);
  const peers = Object.keys(manifest.peerDependencies).join(' ');
  console.log(run('node', ['--input-type=module', '--eval', importAll, entries.join(' '), peers], folder).trim());

  const lock = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'));
  const count = Object.keys(lock.packages).length - 1; // the package itself
  console.log(`production install: ${count} packages besides this one (at most ${maxPackages})`);
  if (count > maxPackages) throw new Error(`more than ${maxPackages} packages in the production install`);
  const scripts = Object.entries(lock.packages).filter(([, entry]) => entry.hasInstallScript);
  if (scripts.length > 0) throw new Error(`install scripts in: ${scripts.map(([name]) => name).join(', ')}`);

  // Optional packages too: who runs the local provider installs them.
  const locked = Object.entries(JSON.parse(readFileSync(resolve('package-lock.json'), 'utf8')).packages);
  const shipped = locked.filter(([name, { dev }]) => name !== '' && dev !== true);
  const running = shipped.filter(([, entry]) => entry.hasInstallScript).map(([name]) => name);
  if (running.length > 0) throw new Error(`install scripts in: ${running.join(', ')}`);
  const unverified = locked.filter(([name, { integrity }]) => name !== '' && integrity === undefined);
  if (unverified.length > 0)
    throw new Error(`no integrity in the lockfile: ${unverified.map(([name]) => name).join(', ')}`);
  console.log(
    `lockfile: ${locked.length - 1} packages with integrity, ${shipped.length} not for development alone, no install script among these`,
  );

  const bom = JSON.parse(run('npm', ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev'], '.'));
  mkdirSync('coverage', { recursive: true });
  writeFileSync('coverage/sbom.json', `${JSON.stringify(bom, undefined, 2)}\n`);
  console.log(`coverage/sbom.json: ${bom.bomFormat} ${bom.specVersion}, ${bom.components.length} components`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
