// Redis on loopback without persistence: one server, a master with a sentinel, or a cluster.
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { findFreePort, until } from './network.js';
import { endChild, processors, startChild } from './processes.js';

const probeMilliseconds = 100;
const slots = 16_384;
const env = { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };

/** Reports whether redis-server is installed. */
export async function isInstalled() {
  const { ended } = startChild(['redis-server', '--version'], { stdio: 'ignore', env });
  return (await ended.catch(() => undefined)) === 0;
}

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
 * Starts `redis-server` with these `flags`. With a `password` it accepts no other command before AUTH. Rejects if it is not
 * installed or does not start.
 *
 * @param {string} folder
 * @param {{ flags?: readonly string[], processor?: string, probes?: boolean, password?: string }} [options]
 */
export async function startRedis(folder, options = {}) {
  const { processor = processors.load, probes = false, password } = options;
  const secured = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
  const flags = [...secured, ...(options.flags ?? [])];
  const port = await findFreePort();
  const command = (...words) => send(port, words, password);
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
    const own = mkdtempSync(join(folder, 'redis-'));
    const words = ['redis-server', '--port', `${port}`, '--bind', '127.0.0.1', '--dir', own, '--save', ''];
    const started = startChild([...words, '--appendonly', 'no', ...flags], { processor, stdio: 'ignore', env });
    const failed = started.ended.then(() => Promise.reject(new Error('redis-server has ended')));
    failed.catch(() => {});
    await Promise.race([until(isReady, 'redis-server does not respond'), failed]);
    return started;
  }

  const kill = async () => {
    running.child.kill('SIGKILL');
    await running.ended;
  };
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    /** Seconds of the slowest reply to a PING. */
    get slowest() {
      return slowest;
    },
    get pid() {
      return running.pid;
    },
    command,
    /** Reads one number of INFO. */
    async read(section, field) {
      return Number((await command('INFO', section)).match(new RegExp(`^${field}:(\\d+)`, 'm'))?.[1]);
    },
    /** Resolves when the INFO of replication contains the text. */
    awaitReplication: (text, otherwise) =>
      until(async () => (await command('INFO', 'replication')).includes(text), otherwise),
    /** Opens a connection for commands. It is still served when Redis accepts no other. */
    async hold() {
      const socket = connect({ port, host: '127.0.0.1' }).setEncoding('latin1');
      await once(socket, 'connect');
      return {
        async command(...words) {
          socket.write(`${words.join(' ')}\r\n`);
          return String((await once(socket, 'data'))[0]);
        },
        close: () => socket.destroy(),
      };
    },
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

/**
 * Starts `redis-server` for TLS connections. Commands of the harness use another port without TLS.
 *
 * @param {string} folder
 * @param {{ certificateFile: string, keyFile: string }} files of the server
 */
export async function startTlsRedis(folder, { certificateFile, keyFile }) {
  const tlsPort = await findFreePort();
  const flags = [
    ...['--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', certificateFile, '--tls-key-file', keyFile],
  ];
  const redis = await startRedis(folder, { flags, probes: true });
  return Object.defineProperty(redis, 'url', { value: `rediss://localhost:${tlsPort}` });
}

/**
 * Starts a master, its replica, and a sentinel that promotes the replica.
 *
 * @param {string} folder
 * @param {{ password?: string, sentinelPassword?: string }} [credentials] of Redis and the sentinel
 */
export async function startSentinels(folder, { password, sentinelPassword } = {}) {
  const master = await startRedis(folder, { probes: true, password });
  const flags = ['--replicaof', '127.0.0.1', `${master.port}`];
  const replica = await startRedis(folder, { flags, probes: true, password });
  await replica.awaitReplication('master_link_status:up', 'the replica has not found its master');
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
  const sentinel = startChild(['redis-sentinel', file], { processor: processors.load, stdio: 'ignore', env });
  await until(
    async () => (await send(port, ['SENTINEL', 'replicas', 'gate'], sentinelPassword)).includes(`${replica.port}`),
    'the sentinel has not found the replica',
  );
  return {
    url: `redis+sentinel://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}/gate`,
    get slowest() {
      return Math.max(master.slowest, replica.slowest);
    },
    /** Cuts the replica off from its master. */
    async part() {
      await replica.command('CONFIG', 'SET', 'masterauth', 'wrong');
      await master.command('CLIENT', 'KILL', 'TYPE', 'replica');
      await replica.awaitReplication('master_link_status:down', 'the replica still follows its master');
    },
    killMaster: master.kill,
    takenOver: () => replica.awaitReplication('role:master', 'the replica was not promoted'),
    async stop() {
      await endChild(sentinel);
      await Promise.all([master.stop(), replica.stop()]);
    },
  };
}

/**
 * Starts a cluster of three masters. The master that stores `key` has a replica.
 *
 * @param {string} folder
 * @param {string} key
 */
export async function startCluster(folder, key) {
  const settings = { enabled: 'yes', 'node-timeout': '1000', 'replica-validity-factor': '0' };
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--cluster-${name}`, value]);
  const nodes = [];
  for (let i = 0; i < 4; i++) nodes.push(await startRedis(folder, { flags, processor: processors.server }));
  const masters = nodes.slice(0, 3);
  const replica = nodes[3];
  const awaitInfo = ({ command }, text) =>
    until(async () => (await command('CLUSTER', 'INFO')).includes(text), `a node did not reach ${text}`);
  for (const [i, node] of masters.entries()) {
    const [from, to] = [i, i + 1].map((each) => Math.floor((each * slots) / masters.length));
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to - 1));
  }
  for (const { port } of nodes.slice(1)) await nodes[0].command('CLUSTER', 'MEET', '127.0.0.1', String(port));
  for (const node of nodes) await awaitInfo(node, 'cluster_known_nodes:4');
  const slot = Number((await masters[0].command('CLUSTER', 'KEYSLOT', key)).match(/:(\d+)/)?.[1]);
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
    master,
    replica,
    others: masters.filter((each) => each !== master),
    stop: async () => void (await Promise.all(nodes.map(({ stop }) => stop()))),
  };
}
