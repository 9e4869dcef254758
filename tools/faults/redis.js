// Redis on loopback ports, without persistence: one process, or a master with its replica and a sentinel.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pin } from './affinity.js';
import { startChild } from './children.js';

const startSeconds = 10;
const probeMilliseconds = 100;

/** Starts `redis-server`, with these `flags` too; rejects where it is not installed, or does not come up. */
export async function startRedis(folder, flags = []) {
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
    const words = ['redis-server', '--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...flags];
    const started = startChild(pin('load', words), { stdio: 'ignore' });
    await until(() => started.child.exitCode !== null || answers(port), 'redis-server does not answer');
    if (started.child.exitCode !== null) throw new Error('redis-server has ended');
    return started;
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
    port,
    url: `redis://127.0.0.1:${port}`,
    /** The answer of Redis, as it is sent. */
    command: (...words) => command(port, words),
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

/** Starts a master, a replica of it, and a sentinel that lets the replica take over. */
export async function startSentinels(folder) {
  const master = await startRedis(folder, ['--dbfilename', 'master.rdb']);
  const replica = await startRedis(folder, [
    ...['--dbfilename', 'replica.rdb'],
    ...['--replicaof', '127.0.0.1', `${master.port}`],
  ]);
  await until(
    async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'),
    'the replica has not found its master',
  );
  const port = await findFreePort();
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor gate 127.0.0.1 ${master.port} 1`,
    'sentinel down-after-milliseconds gate 1000',
    'sentinel failover-timeout gate 5000',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const sentinel = startChild(pin('load', ['redis-sentinel', file]), { stdio: 'ignore' });
  await until(
    async () => (await command(port, ['SENTINEL', 'replicas', 'gate'])).includes(`${replica.port}`),
    'the sentinel has not found the replica',
  );
  return {
    url: `redis+sentinel://127.0.0.1:${port}/gate`,
    get slowest() {
      return Math.max(master.slowest, replica.slowest);
    },
    /** From now on the replica gets nothing of what the master is told. */
    async part() {
      await replica.command('CONFIG', 'SET', 'masterauth', 'wrong');
      await master.command('CLIENT', 'KILL', 'TYPE', 'replica');
      await until(
        async () => (await replica.command('INFO', 'replication')).includes('master_link_status:down'),
        'the replica still follows its master',
      );
    },
    killMaster: master.kill,
    takenOver: () =>
      until(
        async () => (await replica.command('INFO', 'replication')).includes('role:master'),
        'the replica has not taken over',
      ),
    async stop() {
      sentinel.child.kill('SIGKILL');
      await sentinel.ended;
      await Promise.all([master.stop(), replica.stop()]);
    },
  };
}

async function answers(port) {
  return (await command(port, ['PING'])).startsWith('+PONG');
}

/** The first part of the answer; empty if there is none. */
async function command(port, words) {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    socket.write(`${words.join(' ')}\r\n`);
    const [chunk] = await once(socket, 'data');
    return chunk.toString();
  } catch {
    return '';
  } finally {
    socket.destroy();
  }
}

async function until(holds, otherwise) {
  for (const deadline = performance.now() + startSeconds * 1000; performance.now() < deadline; await sleep(20)) {
    if (await holds()) return;
  }
  throw new Error(otherwise);
}

async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}
