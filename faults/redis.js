// A Redis on a loopback port, without persistence.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pin } from './affinity.js';
import { startChild } from './children.js';

const startSeconds = 10;
const probeMilliseconds = 100;

/** Starts `redis-server`; rejects where it is not installed, or does not come up. */
export async function startRedis(folder) {
  const port = await findFreePort();
  let running = await launch();
  let slowest = 0;
  let probing = false;
  const probe = setInterval(async () => {
    if (probing) return;
    probing = true;
    const askedAt = performance.now();
    if (await answers(port)) slowest = Math.max(slowest, (performance.now() - askedAt) / 1000);
    probing = false;
  }, probeMilliseconds);

  async function launch() {
    const words = ['redis-server', '--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
    const started = startChild(pin('load', words), { stdio: 'ignore' });
    for (const deadline = performance.now() + startSeconds * 1000; performance.now() < deadline; await sleep(20)) {
      if (await answers(port)) return started;
      if (started.child.exitCode !== null) break;
    }
    throw new Error('redis-server does not answer');
  }

  const kill = async () => {
    running.child.kill('SIGKILL');
    await running.ended;
  };
  return {
    /** Seconds of the slowest answer to a client of ours. */
    get slowest() {
      return slowest;
    },
    url: `redis://127.0.0.1:${port}`,
    kill,
    async restart() {
      running = await launch();
    },
    async stop() {
      clearInterval(probe);
      await kill();
    },
  };
}

async function answers(port) {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    socket.write('PING\r\n');
    const [chunk] = await once(socket, 'data');
    return chunk.toString().startsWith('+PONG');
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}
