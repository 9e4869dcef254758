// Time from spawn to the first connection that is accepted, while the provider cannot be reached.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { endChild, processors, startChild } from '../children.js';
import { serviceWords } from '../runtimes.js';
import { findFreePort } from '../scene.js';

const times = 9;
/** Milliseconds. */
const patience = 10_000;

async function isOpen(port) {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function measureOnce() {
  const [port, nobody] = [await findFreePort(), await findFreePort()];
  const startedAt = performance.now();
  const running = startChild(serviceWords('here'), {
    processor: processors.server,
    env: {
      PATH: process.env.PATH,
      IDP_DOMAIN: `127.0.0.1:${nobody}`,
      IDP_AUDIENCE: 'https://api.example.com/',
      HOST: '127.0.0.1',
      PORT: port,
      ADMIN_PORT: 'off',
    },
    stdio: 'ignore',
  });
  try {
    while (!(await isOpen(port))) {
      if (performance.now() - startedAt > patience) throw new Error('the service does not listen');
      await sleep(1);
    }
    return performance.now() - startedAt;
  } finally {
    await endChild(running);
  }
}

/** Milliseconds of each start. */
export async function measureStart() {
  const milliseconds = [];
  for (let i = 0; i < times; i++) milliseconds.push(await measureOnce());
  return { milliseconds };
}
