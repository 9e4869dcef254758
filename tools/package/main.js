// Packs the package and treats the tarball as a stranger would: lints it, installs it in an empty folder, runs it.
import { execFileSync } from 'node:child_process';
import { copyFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { installPackages } from '../bench/install.js';
import { makeFolder } from '../shared/folder.js';

/** Maximum size of `npm install portcullis` in an empty folder, with this package. The README has the same numbers. */
const maxPackages = 8;
const maxMebibytes = 13;
const promise = `at most ${maxPackages} packages and ${maxMebibytes} MiB`;

/** Packages that `npm ci` installs in the repository. */
const maxDevelopment = 350;

/** Size of the unpacked package, in bytes, without its dependencies. */
const maxUnpacked = 2_700_000;

/** Maximum compressed size of the deployed Workers example, without minification. */
const maxWorkerKibibytes = 80;

/** Maximum size of the code that `import 'portcullis'` loads, without minification. */
const maxImportKibibytes = 320;

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

/** Imports every entry point without optional peers: an entry point for a peer must name it in its error. */
const importAll = `
  const [entries, peers] = process.argv.slice(1).map((names) => names.split(' '));
    const missing = [];
  for (const name of entries) {
    const error = await import(name).then(() => undefined, (refused) => refused);
    const peer = peers.find((each) => error?.message.includes(each));
    if (error !== undefined && (error.code !== 'ERR_MODULE_NOT_FOUND' || peer === undefined)) throw error;
    if (error !== undefined) missing.push(name + ' needs ' + peer);
  }
  console.log('without any framework: ' + (entries.length - missing.length) + ' entry points load; ' + missing.join(', '));
`;

/** Throws where the package is not as promised. */
function refuseIf(condition, text) {
  if (condition) throw new Error(text);
}

const run = (command, args, cwd) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** Space on disk, as `du` counts it. */
function measure(path) {
  const status = lstatSync(path);
  const own = status.blocks * 512;
  return status.isDirectory() ? readdirSync(path).reduce((sum, name) => sum + measure(join(path, name)), own) : own;
}

/** Bundles the example of Workers in a folder where the package is installed, as wrangler does: its modules, and its code. */
async function bundleWorker(folder) {
  const input = join(folder, 'worker.ts');
  copyFileSync('examples/workers/worker.ts', input);
  const conditionNames = ['workerd', 'worker', 'browser', 'import', 'default'];
  const bundle = await rolldown({ input, platform: 'neutral', resolve: { conditionNames }, external: /^node:/ });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  const chunks = output.flatMap((part) => (part.type === 'chunk' ? [part] : []));
  return {
    modules: chunks.flatMap((chunk) => Object.keys(chunk.modules)),
    code: chunks.map(({ code }) => code).join(''),
  };
}

/** Measures what `import 'portcullis'` loads in a folder where the package is installed, without what is imported later. */
async function measureImportGraph(folder) {
  const input = join(folder, 'import.js');
  writeFileSync(input, "import 'portcullis';");
  const bundle = await rolldown({ input, platform: 'node', external: /^node:/, treeshake: false });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  const chunks = output.filter((part) => part.type === 'chunk');
  const loaded = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports } of loaded) for (const each of chunks) if (imports.includes(each.fileName)) loaded.add(each);
  const codes = [...loaded].flatMap(({ modules }) => Object.values(modules).map(({ code }) => code ?? ''));
  const kibibytes = Math.ceil(codes.reduce((sum, code) => sum + Buffer.byteLength(code), 0) / 1024);
  return { files: codes.filter((code) => code !== '').length, kibibytes };
}

/** Files of the repository and the site only: the repeated declarations, figures, and manifests for an image of the repository. */
const leftOut = ['docs/reference.md', 'docs/performance.md', 'deploy/kubernetes/'];

/** Lists links from pages of the tarball to files that it does not contain. The registry shows images from the repository. */
function findBrokenLinks(paths) {
  const link = /(?<!!\[[^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)/g;
  const code = /^```[\s\S]*?^```/gm;
  const links = paths
    .filter((path) => path.endsWith('.md'))
    .flatMap((page) => [...readFileSync(page, 'utf8').replace(code, '').matchAll(link)].map(([, to]) => [page, to]));
  const broken = links.filter(([page, target]) => {
    const [path] = posix.normalize(posix.join(dirname(page), target)).split('#');
    return !paths.includes(path) && !leftOut.some((each) => path.startsWith(each));
  });
  console.log(`links between the pages of the tarball: ${links.length}, ${broken.length} of them broken`);
  return broken.map(([page, target]) => `${page} → ${target}`);
}

/**
 * Returns the bill of materials of this package, from the folder of the installation. With `--omit dev`, npm would omit
 * packages that development also needs.
 */
function describeMaterials(bom) {
  const own = bom.components.find(({ name }) => name === 'portcullis');
  const externalReferences = own.externalReferences.filter(({ type }) => type !== 'distribution'); // a temporary path
  return {
    ...bom,
    metadata: { ...bom.metadata, component: { ...own, externalReferences } },
    components: bom.components.filter((component) => component !== own),
    dependencies: bom.dependencies.filter(({ ref }) => !ref.startsWith('project@')),
  };
}

const folder = makeFolder('package');
const [packed] = JSON.parse(run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], '.'));
const tarball = join(folder, packed.filename);
const unpacked = packed.unpackedSize;
console.log(
  `packed: ${packed.entryCount} files, ${(unpacked / 1e6).toFixed(2)} MB unpacked (at most ${(maxUnpacked / 1e6).toFixed(2)})`,
);
refuseIf(unpacked > maxUnpacked, 'the unpacked package is too large');
const evidence = packed.files.filter(({ path }) => path.startsWith('docs/evidence/'));
refuseIf(evidence.length > 0, 'the package contains docs/evidence');

const broken = findBrokenLinks(packed.files.map(({ path }) => path));
refuseIf(broken.length > 0, `links that lead nowhere in the tarball: ${broken.join(', ')}`);

// Older @types/node have this name in node:crypto, newer ones do not: a user would need skipLibCheck.
const nodeBound = packed.files.filter(
  ({ path }) => path.endsWith('.d.ts') && /\bJsonWebKey\b/.test(readFileSync(path, 'utf8')),
);
refuseIf(nodeBound.length > 0, `declarations with JsonWebKey: ${nodeBound.map(({ path }) => path).join(', ')}`);

const here = fileURLToPath(new URL('.', import.meta.url));
installPackages(here);
const linters = join(here, 'node_modules/.bin');
console.log(run(join(linters, 'publint'), ['--strict', tarball], '.').trim());
console.log(run(join(linters, 'attw'), [tarball, '--profile', 'esm-only', '--no-emoji'], '.').trim());

writeFileSync(join(folder, 'package.json'), '{"name":"project","version":"0.0.0","private":true}\n');
run('npm', ['install', tarball], folder);
const help = run('npx', ['portcullis', '--help'], folder);
refuseIf(!help.includes('Usage: portcullis'), 'portcullis --help does not print its usage');
console.log('installed in an empty folder: npx portcullis --help works');
const manifest = JSON.parse(readFileSync(resolve('package.json'), 'utf8'));
refuseIf(run('npx', ['portcullis', '--version'], folder).trim() !== manifest.version, '--version does not fit');

console.log(run('node', ['--input-type=module', '--eval', useTestKit], folder).trim());

const entries = Object.keys(manifest.exports)
  .filter((subpath) => !subpath.endsWith('.json'))
  .map((subpath) => `portcullis${subpath.slice(1)}`);
const peers = Object.keys(manifest.peerDependencies).join(' ');
console.log(run('node', ['--input-type=module', '--eval', importAll, entries.join(' '), peers], folder).trim());

const { modules, code } = await bundleWorker(folder);
const workerKibibytes = Math.ceil(gzipSync(code).length / 1024);
console.log(`bundle for Workers: ${workerKibibytes} KiB compressed (at most ${maxWorkerKibibytes})`);
refuseIf(!modules.some((path) => path.includes('/portcullis/dist/')), 'the bundle for Workers is not of the package');
refuseIf(
  modules.some((path) => path.includes('/node_modules/undici/')),
  'the bundle for Workers has undici',
);
refuseIf(workerKibibytes > maxWorkerKibibytes, 'the bundle for Workers is too large');

const graph = await measureImportGraph(folder);
console.log(`import 'portcullis': ${graph.files} files, ${graph.kibibytes} KiB (at most ${maxImportKibibytes})`);
refuseIf(graph.kibibytes > maxImportKibibytes, "import 'portcullis' loads too much");

const lock = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'));
const count = Object.keys(lock.packages).length;
const mebibytes = Math.ceil((measure(join(folder, 'node_modules')) / 2 ** 20) * 10) / 10;
console.log(
  `npm install portcullis: ${count} packages (at most ${maxPackages}), ${mebibytes} MiB (at most ${maxMebibytes})`,
);
refuseIf(!readFileSync('README.md', 'utf8').includes(promise), `the README does not say: ${promise}`);
refuseIf(count > maxPackages, `more than ${maxPackages} packages in an install`);
refuseIf(mebibytes > maxMebibytes, `an install takes more than ${maxMebibytes} MiB`);
const scripts = Object.entries(lock.packages).filter(([, entry]) => entry.hasInstallScript);
refuseIf(scripts.length > 0, `install scripts in: ${scripts.map(([name]) => name).join(', ')}`);

const { packages } = JSON.parse(readFileSync(resolve('package-lock.json'), 'utf8'));
const locked = Object.entries(packages);
// The local provider and Redis are used with what their packages bring: these run nothing when they are installed.
const tools = ':is([name="oidc-provider"], [name="@peculiar/x509"], [name="@redis/client"])';
const optional = JSON.parse(run('npm', ['query', `${tools}, ${tools} *`], '.')).map(({ location }) => location);
const shipped = locked.filter(([name, { dev }]) => name !== '' && (dev !== true || optional.includes(name)));
const running = shipped.filter(([, entry]) => entry.hasInstallScript).map(([name]) => name);
refuseIf(running.length > 0, `install scripts in: ${running.join(', ')}`);
const fits = (named, own) => named?.includes(own) ?? true;
const onLinux = locked.filter(
  ([name, { os, cpu, libc }]) => name !== '' && fits(os, 'linux') && fits(cpu, 'x64') && fits(libc, 'glibc'),
);
console.log(`npm ci in the repository, on Linux: ${onLinux.length} packages (at most ${maxDevelopment})`);
refuseIf(onLinux.length > maxDevelopment, 'npm ci in the repository installs too much');
const unverified = locked.filter(([name, { integrity }]) => name !== '' && integrity === undefined);
refuseIf(unverified.length > 0, `no integrity in the lockfile: ${unverified.map(([name]) => name).join(', ')}`);
console.log(
  `lockfile: ${locked.length - 1} packages with integrity, ${shipped.length} of them run outside development or on request, and these have no install script`,
);

const bom = describeMaterials(JSON.parse(run('npm', ['sbom', '--sbom-format', 'cyclonedx'], folder)));
refuseIf(bom.components.length !== count - 1, 'the bill of materials does not list what was installed');
mkdirSync('coverage', { recursive: true });
writeFileSync('coverage/sbom.json', `${JSON.stringify(bom, undefined, 2)}\n`);
console.log(`coverage/sbom.json: ${bom.bomFormat} ${bom.specVersion}, ${bom.components.length} components`);
