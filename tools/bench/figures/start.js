// Time from spawn until the service reports that it listens, while the provider is unreachable.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { endChild, processors, startChild } from '../../shared/processes.js';

const times = 9;

/**
 * Milliseconds of one start of the build in a folder. The service chooses its port and reports it by message: a probe of a free
 * port can connect to itself.
 */
export async function timeStart({ folder = '.', node = process.execPath } = {}) {
  const cache = mkdtempSync(join(tmpdir(), 'portcullis-start-'));
  const startedAt = performance.now();
  const running = startChild([node, resolve(folder, 'dist/cli/main.js'), 'serve'], {
    processor: processors.server,
    env: {
      PATH: process.env.PATH,
      XDG_CACHE_HOME: cache,
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
    rmSync(cache, { recursive: true, force: true });
  }
}

/** Milliseconds of each start. */
export async function measureStart() {
  const milliseconds = [];
  for (let i = 0; i < times; i++) milliseconds.push(await timeStart());
  return { milliseconds };
}
