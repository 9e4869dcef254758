// Figures of the service alone: its start, its import, its memory when it is idle.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { makeFolder } from '../shared/folder.js';
import { findFreePort } from '../shared/network.js';
import { endChild, processors, residentMemory, startChild } from '../shared/processes.js';
import { startServer } from './running.js';
import { serviceWords } from './runtimes.js';
import { servers } from './servers.js';

const processor = processors.server;
/** Calls a function N times, one after the other. */
const repeat = async (times, measure) => {
  const found = [];
  for (let i = 0; i < times; i++) found.push(await measure());
  return found;
};

/**
 * Milliseconds from the spawn until the service reports that it listens, while the provider is unreachable. The service chooses its
 * port and reports it by message: a probe of a free port can connect to itself.
 */
async function timeStart() {
  const startedAt = performance.now();
  const running = startChild(serviceWords('here'), {
    processor,
    env: {
      PATH: process.env.PATH,
      XDG_CACHE_HOME: makeFolder('start'),
      IDP_DOMAIN: 'localhost:9', // the discard port, on which no server listens
      IDP_AUDIENCE: 'https://api.example.com/',
      HOST: '127.0.0.1',
      PORT: '0',
      ADMIN_PORT: '0',
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  try {
    await running.orEnd(once(running.child, 'message'), 'the service');
    return performance.now() - startedAt;
  } finally {
    await endChild(running);
  }
}

/** Milliseconds of one import of the package in its own process. */
function timeImport() {
  const program = `const at = performance.now(); await import('portcullis'); console.log(performance.now() - at);`;
  const words = ['-c', processor, process.execPath, '--input-type=module', '--eval', program];
  const { stdout, stderr, status } = spawnSync('taskset', words, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`import portcullis: ${stderr}`);
  return Number(stdout);
}

/** Resident memory of the service after its first response, in MiB. */
async function measureIdle(scene) {
  const running = await startServer('idle', servers.portcullis, { scene, port: await findFreePort() });
  const mebibytes = residentMemory(running.pid);
  await running.stop();
  return mebibytes;
}

export const figures = {
  start: async () => ({ milliseconds: await repeat(9, timeStart) }),
  // Without the first one, which reads the files from disk.
  import: async () => ({ milliseconds: (await repeat(10, timeImport)).slice(1) }),
  memory: async (scene) => ({ idle: await repeat(7, () => measureIdle(scene)) }),
};
