// node tools/scripts/getting-started.js [VERSION…]: follows docs/getting-started.md on each supported version of Node, in JavaScript and
// TypeScript: each console line of the page, in an empty folder, with this build as `portcullis`. Prints the table of
// docs/evidence/first-reading.md. Needs access to npm, curl, and the ports 3000 and 9443. Exits with 1 if an output differs from the page.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { installPackages } from '../bench/install.js';
import { nodeVersions } from '../bench/runtimes.js';
import { makeFolder } from '../shared/folder.js';
import { isOpen, until } from '../shared/network.js';

const readBlocks = (text, language) =>
  [...text.matchAll(/^```(\w+)\n([\s\S]*?)\n```$/gm)].flatMap(([, named, code]) => (named === language ? [code] : []));
const [guide, typescript] = readFileSync('docs/getting-started.md', 'utf8').split(/^## TypeScript$/m);
const [setUp, provider, start, requests, explain] = readBlocks(guide, 'console');
const [responses, explanation] = readBlocks(guide, 'text');
const compiled = readBlocks(typescript, 'console')[0].split('\n');

/** Does what the page says. Returns the cells of a row. */
async function follow(version, isTyped) {
  const home = makeFolder('reader');
  const path = [dirname(nodeVersions[version]), process.env.PATH].join(delimiter);
  const options = { cwd: home, env: { ...process.env, HOME: home, PATH: path, npm_config_cache: cache } };
  const startedAt = performance.now();
  const cells = [];
  const addTime = () => cells.push(Math.round((performance.now() - startedAt) / 1000));
  const run = (line) => {
    const words = ['-c', line.replace(' portcullis express', ` ${tarball} express`)];
    const { status, stdout, stderr } = spawnSync('/bin/sh', words, { ...options, encoding: 'utf8' });
    if (status !== (line === explain ? 1 : 0)) throw new Error(`${line} ended with ${status}: ${stdout}${stderr}`);
    if (line.endsWith('cd messages')) options.cwd = join(home, 'messages');
    return stdout.trim();
  };
  const serve = async (line, port) => {
    await until(async () => !(await isOpen(port)), `port ${port} is taken`);
    // Its own group, because the shell and npx wait for the program.
    const child = spawn('/bin/sh', ['-c', line], { ...options, detached: true, stdio: 'ignore' });
    const stop = () => process.off('exit', stop) && process.kill(-Number(child.pid));
    process.once('exit', stop);
    await until(() => isOpen(port), `${line} does not listen on port ${port}`);
    return stop;
  };
  const request = () => requests.split('\n').map(run).join('\n') === responses;
  setUp.split('\n').forEach(run);
  writeFileSync(join(options.cwd, 'server.js'), `${readBlocks(guide, 'js')[0]}\n`);
  writeFileSync(join(options.cwd, 'tsconfig.json'), `${readBlocks(typescript, 'json')[0]}\n`);
  if (isTyped) compiled.slice(0, -1).forEach(run);
  addTime();
  const stopProvider = await serve(provider, 9443);
  let stopServer = await serve(isTyped ? compiled.at(-1) : start, 3000);
  let isEqual = request();
  addTime();
  isEqual &&= `${run(explain)}\n`.startsWith(`${explanation}\n`);
  addTime();
  stopServer();
  if (isTyped && version !== '20') {
    stopServer = await serve(start.replace('server.js', 'server.ts'), 3000);
    isEqual &&= request();
    stopServer();
  }
  stopProvider();
  if (!isEqual) process.exitCode = 1;
  return [...cells, isEqual ? 'as on the page' : 'differs'];
}

installPackages();
const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();
const folder = makeFolder('packed');
const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
const tarball = join(folder, JSON.parse(execFileSync('npm', pack, { encoding: 'utf8' }))[0].filename);
console.log(
  '| Node | language | installed, s | first 200, s | explained, s | output |\n| --- | --- | --- | --- | --- | --- |',
);
for (const version of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(nodeVersions)) {
  const release = execFileSync(nodeVersions[version], ['--version'], { encoding: 'utf8' }).trim().slice(1);
  for (const language of ['JavaScript', 'TypeScript'])
    console.log(`| ${[release, language, ...(await follow(version, language === 'TypeScript'))].join(' | ')} |`);
}
