// Where the runtimes are that the bench's own packages bring.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const file = (path) => fileURLToPath(new URL(`node_modules/${path}`, import.meta.url));
const here = fileURLToPath(new URL('../..', import.meta.url));
const runtime = (label, binary, ...more) => ({ label, binary, words: [binary, ...more] });

const denoBinary = file('@deno/linux-x64-glibc/deno');
// Without this, Deno checks for updates through the proxy of the environment.
const quietly = ['/usr/bin/env', 'DENO_NO_UPDATE_CHECK=1'];
const deno = { label: 'Deno', binary: denoBinary, words: [...quietly, denoBinary, 'run', '-A'] };

/** The files of each supported version of Node, by its major number. */
export const nodeVersions = {
  20: file('node20-linux-x64/bin/node'),
  22: file('node22-linux-x64/bin/node'),
  24: file('node24-linux-x64/bin/node'),
  26: file('node26-linux-x64/bin/node'),
};

/** Binary and leading arguments of each runtime. */
export const runtimes = {
  here: runtime('Node', process.execPath),
  node22: runtime('Node', nodeVersions[22]),
  node24: runtime('Node', nodeVersions[24]),
  node26: runtime('Node', nodeVersions[26]),
  bun: runtime('Bun', file('@oven/bun-linux-x64/bin/bun')),
  deno,
};

/** Runtimes of the library. workerd has its own listener, so the service does not run there. */
export const libraryRuntimes = {
  ...runtimes,
  workerd: runtime('workerd', file('@cloudflare/workerd-linux-64/bin/workerd')),
};

/** The command line of the service on a runtime, from the build in a folder. */
export const serviceWords = (name, folder = here) => [
  ...runtimes[name].words,
  join(folder, 'dist/cli/main.js'),
  'serve',
];

/** The command line of a server of the bench on a runtime. */
export const serverWords = (server, name = 'here') => [
  ...runtimes[name].words,
  fileURLToPath(new URL(`servers/${server}.js`, import.meta.url)),
];

/** Reports whether a runtime is installed; the packages exist for Linux on x64 only. */
export const hasRuntime = (name) => existsSync(runtimes[name].binary);
