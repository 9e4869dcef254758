// Redis on loopback without persistence: one server, a master with a sentinel, or a cluster. Tests and tools use it.
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { makeFolder } from './folder.js';
import { findFreePort, until } from './network.js';
import { endChild, startChild } from './processes.js';

const probeMilliseconds = 100;
const slots = 16_384;
const env = { PATH: `${process.env['PATH']}:/usr/sbin:/usr/local/sbin` };

/** Sends one command and returns the raw reply, after the reply to AUTH. Returns an empty string if there is none. */
async function send(port, words, login) {
  const socket = connect({ port, host: '127.0.0.1' });
  const auth = login === undefined ? '' : `AUTH ${login}\r\n`;
  socket.setEncoding('latin1').end(`${auth}${words.join(' ')}\r\nQUIT\r\n`);
  let reply = '';
  try {
    for await (const chunk of socket) reply += chunk;
  } catch {
    // refused or cut
  }
  return reply;
}

/**
 * Starts `redis-server` with these `flags`. With a `password` it accepts no other command before AUTH. With `probes`, a PING is
 * sent ten times a second. Rejects if it is not installed or does not start.
 *
 * @param {{ flags?: readonly string[], probes?: boolean, password?: string | undefined }} [options]
 */
export async function startRedis(options = {}) {
  const { probes = false, password } = options;
  const secured = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
  const folder = makeFolder('redis');
  const port = await findFreePort();
  const words = ['redis-server', '--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder];
  words.push('--save', '', '--appendonly', 'no', ...secured, ...(options.flags ?? []));
  /** Runs one command on a new connection. Resolves with the raw reply. @param {readonly string[]} command */
  const command = (...command) => send(port, command, password);
  const isReady = async () => (await command('PING')).includes('+PONG');
  let running = await launch();
  let slowest = 0;
  let probing = false;
  const probe = setInterval(async () => {
    if (probing || !probes) return;
    probing = true;
    const sentAt = performance.now();
    if (await isReady()) slowest = Math.max(slowest, (performance.now() - sentAt) / 1000);
    probing = false;
  }, probeMilliseconds);
  probe.unref();

  async function launch() {
    const started = startChild(words, { stdio: 'ignore', env });
    await started.orEnd(until(isReady, 'redis-server does not respond'), 'redis-server');
    return started;
  }

  const kill = async () => {
    running.child.kill('SIGKILL');
    await running.ended;
  };
  return {
    port,
    url: `redis://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}127.0.0.1:${port}`,
    /** Seconds of the slowest reply to a PING. */
    get slowest() {
      return slowest;
    },
    command,
    /** Resolves when the INFO of replication contains the text. */
    awaitReplication: (text, otherwise) =>
      until(async () => (await command('INFO', 'replication')).includes(text), otherwise),
    /** Opens a connection for commands. It is still served when Redis accepts no other. */
    async hold() {
      const socket = connect({ port, host: '127.0.0.1' }).setEncoding('latin1');
      await once(socket, 'connect');
      return {
        async command(...command) {
          socket.write(`${command.join(' ')}\r\n`);
          return String((await once(socket, 'data'))[0]);
        },
        close: () => socket.destroy(),
      };
    },
    /** Kills it at once, as a crash would. */
    kill,
    /** Starts it again on the same port, empty. */
    async restart() {
      await kill();
      running = await launch();
    },
    /** Suspends its process; connections stay open without replies. */
    freeze: () => void running.child.kill('SIGSTOP'),
    thaw: () => void running.child.kill('SIGCONT'),
    async stop() {
      clearInterval(probe);
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Starts `redis-server` for TLS connections. Commands of the harness use another port without TLS.
 *
 * @param {{ certificateFile: string, keyFile: string }} files of the server
 */
export async function startTlsRedis({ certificateFile, keyFile }) {
  const tlsPort = await findFreePort();
  const flags = [
    ...['--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', certificateFile, '--tls-key-file', keyFile],
  ];
  const redis = await startRedis({ flags, probes: true });
  return Object.defineProperty(redis, 'url', { value: `rediss://localhost:${tlsPort}` });
}

/**
 * Starts a master, its replica, and a sentinel that promotes the replica.
 *
 * @param {{ password?: string, sentinelPassword?: string }} [credentials] of Redis and the sentinel
 */
export async function startSentinels({ password, sentinelPassword } = {}) {
  const master = await startRedis({ probes: true, password });
  const replica = await startRedis({ flags: ['--replicaof', '127.0.0.1', `${master.port}`], probes: true, password });
  await replica.awaitReplication('master_link_status:up', 'the replica has not found its master');
  const folder = makeFolder('sentinel');
  const port = await findFreePort();
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor gate 127.0.0.1 ${master.port} 1`,
    'sentinel down-after-milliseconds gate 1000',
    'sentinel failover-timeout gate 5000',
    ...(password === undefined ? [] : [`sentinel auth-pass gate ${password}`]),
    ...(sentinelPassword === undefined ? [] : [`requirepass ${sentinelPassword}`]),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const sentinel = startChild(['redis-sentinel', file], { stdio: 'ignore', env });
  const ask = (...words) => send(port, ['SENTINEL', ...words], sentinelPassword);
  await until(
    async () => (await ask('replicas', 'gate')).includes(`${replica.port}`),
    'the sentinel has not found the replica',
  );
  return {
    url: `redis+sentinel://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}/gate`,
    get slowest() {
      return Math.max(master.slowest, replica.slowest);
    },
    replica,
    /** Cuts the replica off from its master. */
    async part() {
      await replica.command('CONFIG', 'SET', 'masterauth', 'wrong');
      await master.command('CLIENT', 'KILL', 'TYPE', 'replica');
      await replica.awaitReplication('master_link_status:down', 'the replica still follows its master');
    },
    /** Kills the master. Resolves when the sentinel leads to the replica. */
    async failOver() {
      await master.kill();
      await replica.awaitReplication('role:master', 'the replica was not promoted');
      await until(
        async () => (await ask('get-master-addr-by-name', 'gate')).includes(`${replica.port}`),
        'the sentinel does not lead to the replica',
      );
    },
    async stop() {
      await endChild(sentinel);
      await Promise.all([master.stop(), replica.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a cluster of three masters. The master that stores `key` has a replica. */
export async function startCluster(key = 'any') {
  const settings = { enabled: 'yes', 'node-timeout': '1000', 'replica-validity-factor': '0' };
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--cluster-${name}`, value]);
  const masters = await Promise.all(Array.from({ length: 3 }, () => startRedis({ flags })));
  const replica = await startRedis({ flags });
  const nodes = [...masters, replica];
  const [first] = masters;
  const awaitInfo = ({ command }, text) =>
    until(async () => (await command('CLUSTER', 'INFO')).includes(text), `a node did not reach ${text}`);
  for (const [i, node] of masters.entries()) {
    const [from = 0, to = 0] = [i, i + 1].map((each) => Math.floor((each * slots) / masters.length));
    await node.command('CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to - 1}`);
  }
  for (const { port } of nodes) await first.command('CLUSTER', 'MEET', '127.0.0.1', `${port}`);
  for (const node of nodes) await awaitInfo(node, 'cluster_known_nodes:4');
  const slot = Number((await first.command('CLUSTER', 'KEYSLOT', key)).match(/:(\d+)/)?.[1]);
  const master = masters[Math.min(masters.length - 1, Math.floor((slot * masters.length) / slots))];
  const id = (await master.command('CLUSTER', 'MYID')).match(/[0-9a-f]{40}/)?.[0] ?? '';
  await until(
    async () => (await replica.command('CLUSTER', 'REPLICATE', id)).startsWith('+OK'),
    'the replica does not know its master',
  );
  await replica.awaitReplication('master_link_status:up', 'the replica has not found its master');
  for (const node of nodes) await awaitInfo(node, 'cluster_state:ok');
  return {
    url: `redis+cluster://${masters.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    replica,
    /** Kills the master of `key`. Resolves when its replica serves. */
    async failOver() {
      await master.kill();
      await replica.awaitReplication('role:master', 'the replica was not promoted');
      await awaitInfo(replica, 'cluster_state:ok');
    },
    stop: async () => void (await Promise.all(nodes.map(({ stop }) => stop()))),
  };
}
