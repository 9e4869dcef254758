// How long a process takes: `import 'portcullis'`, and the service from its start until it listens, while the provider is
// away. Milliseconds. `node scripts/start-time.js FOLDER …` compares builds (folders that hold dist/), run by run in turn.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** Another program to run, such as a newer Node. */
const node = process.env['NODE'] ?? process.execPath;
const rounds = Number(process.env['ROUNDS'] ?? 15);
const folders = process.argv.length > 2 ? process.argv.slice(2) : ['.'];

const importing = `
  const start = performance.now();
  await import(process.argv[1]);
  console.log(performance.now() - start);
`;

const cache = mkdtempSync(join(tmpdir(), 'portcullis-start-'));

/** Nothing listens on the discard port: each fetch of the keys is refused at once. */
const environment = {
  PATH: process.env['PATH'],
  XDG_CACHE_HOME: cache,
  IDP_DOMAIN: 'localhost:9',
  IDP_AUDIENCE: 'urn:start-time',
  HOST: '127.0.0.1',
  PORT: '0',
  ADMIN_PORT: '0',
};

async function timeImport(folder) {
  const index = resolve(folder, 'dist/index.js');
  const child = spawn(node, ['--input-type=module', '--eval', importing, index], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = await once(child.stdout, 'data');
  await once(child, 'exit');
  return Number(output);
}

async function timeListening(folder) {
  const start = performance.now();
  const child = spawn(node, [resolve(folder, 'dist/cli/main.js'), 'serve'], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let output = '';
  for await (const chunk of child.stdout) {
    output += chunk;
    if (output.includes('"event":"listening"')) break;
  }
  const time = performance.now() - start;
  child.kill('SIGTERM'); // an orderly end, at which newer versions of Node keep what they have compiled
  await exited;
  if (!output.includes('"event":"listening"')) throw new Error(`${folder}: the service did not start`);
  return time;
}

const measures = { "import 'portcullis'": timeImport, 'start to listening': timeListening };
for (const [name, time] of Object.entries(measures)) {
  const times = folders.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [index, folder] of folders.entries()) {
      const taken = await time(folder);
      if (round > 0) times[index].push(taken); // the first one reads the files from disk
    }
  }
  for (const [index, folder] of folders.entries()) {
    const sorted = times[index].toSorted((a, b) => a - b);
    const [fastest, median] = [sorted[0], sorted[Math.floor(rounds / 2)]];
    console.log(`${name}, ${folder}: median ${median.toFixed(0)} ms, fastest ${fastest.toFixed(0)} ms of ${rounds}`);
  }
}
console.log(execFileSync(node, ['--version'], { encoding: 'utf8' }).trim());
rmSync(cache, { recursive: true, force: true });
