// npm run start-time [-- FOLDER …]: how long the service takes until it listens, while the provider is away.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { compareBuilds, node } from './compare-builds.js';

const cache = mkdtempSync(join(tmpdir(), 'portcullis-start-'));
const listening = '"event":"listening"';

const environment = {
  PATH: process.env['PATH'],
  XDG_CACHE_HOME: cache,
  // Nothing listens on the discard port: each fetch of the keys is refused at once.
  IDP_DOMAIN: 'localhost:9',
  IDP_AUDIENCE: 'urn:start-time',
  HOST: '127.0.0.1',
  PORT: '0',
  ADMIN_PORT: '0',
};

async function timeStart(folder) {
  const start = performance.now();
  const child = spawn(node, [resolve(folder, 'dist/cli/main.js'), 'serve'], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let output = '';
  for await (const chunk of child.stdout) {
    output += chunk;
    if (output.includes(listening)) break;
  }
  const time = performance.now() - start;
  child.kill('SIGTERM'); // an orderly end, at which newer versions of Node keep what they have compiled
  await exited;
  if (!output.includes(listening)) throw new Error(`${folder}: the service did not start`);
  return time;
}

try {
  await compareBuilds('start to listening', timeStart);
} finally {
  rmSync(cache, { recursive: true, force: true });
}
