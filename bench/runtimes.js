// Where the runtimes are that the bench's own packages bring.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const file = (path) => fileURLToPath(new URL(`node_modules/${path}`, import.meta.url));
const service = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const node = (binary) => ({ binary, words: [binary], version: ['--version'] });

/** The file of each runtime, and the words before that of a program. */
export const runtimes = {
  node20: node(process.execPath),
  node22: node(file('node22-linux-x64/bin/node')),
  node24: node(file('node24-linux-x64/bin/node')),
  node26: node(file('node26-linux-x64/bin/node')),
  bun: { ...node(file('@oven/bun-linux-x64/bin/bun')) },
  deno: { ...node(file('@deno/linux-x64-glibc/deno')), words: [file('@deno/linux-x64-glibc/deno'), 'run', '-A'] },
};

/** The command line of the service on a runtime. */
export const serviceWords = (runtime) => [...runtimes[runtime].words, service, 'serve'];

/** The command line of a server of the bench on a runtime. */
export const serverWords = (name, runtime = 'node20') => [
  ...runtimes[runtime].words,
  fileURLToPath(new URL(`servers/${name}.js`, import.meta.url)),
];

/** Whether a runtime is there: the packages bring them for Linux on x64 alone. */
export const hasRuntime = (runtime) => existsSync(runtimes[runtime].binary);
