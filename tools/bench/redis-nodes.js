// Real nodes of Redis on loopback: one by itself, or a cluster of three masters of which the one with the records has a replica.
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endChild, processors, startChild } from './children.js';
import { findFreePort } from './scene.js';

/** Milliseconds. */
const patience = 15_000;
const slots = 16_384;

export async function until(holds) {
  for (const deadline = performance.now() + patience; ; await sleep(20)) {
    if (await holds().catch(() => false)) return;
    if (performance.now() > deadline) throw new Error('Redis did not come to the state that was waited for');
  }
}

/** Starts a node without persistence, on the processor of the servers; `ask` sends one command and returns the raw answer. */
export async function startNode(folder, flags = []) {
  const port = await findFreePort();
  const own = mkdtempSync(join(folder, 'redis-'));
  const words = ['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--dir', own, '--save', ''];
  const running = startChild([...words, '--appendonly', 'no', ...flags], {
    processor: processors.server,
    stdio: 'ignore',
    env: { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` },
  });
  const ask = async (...command) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.setEncoding('latin1').end(`${command.join(' ')}\r\nQUIT\r\n`);
    let answer = '';
    for await (const chunk of socket) answer += chunk;
    return answer;
  };
  await until(async () => (await ask('PING')).includes('+PONG'));
  return {
    port,
    pid: running.pid,
    ask,
    /** One number of INFO. */
    async read(section, field) {
      const value = (await ask('INFO', section)).match(new RegExp(`^${field}:(\\d+)`, 'm'))?.[1];
      return Number(value);
    },
    async kill() {
      running.child.kill('SIGKILL');
      await running.ended;
    },
    stop: () => endChild(running),
  };
}

/**
 * Starts three masters, and a replica of the one that has this key. `url` is what a replay store is given.
 *
 * @param {string} folder
 * @param {string} key
 */
export async function startCluster(folder, key) {
  const flags = [
    '--cluster-enabled',
    'yes',
    '--cluster-node-timeout',
    '1000',
    '--cluster-replica-validity-factor',
    '0',
  ];
  const nodes = [];
  for (let i = 0; i < 4; i++) nodes.push(await startNode(folder, flags));
  const masters = nodes.slice(0, 3);
  const replica = nodes[3];
  for (const [i, node] of masters.entries()) {
    const [from, to] = [i, i + 1].map((each) => Math.floor((each * slots) / masters.length));
    await node.ask('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to - 1));
  }
  for (const { port } of nodes.slice(1)) await nodes[0].ask('CLUSTER', 'MEET', '127.0.0.1', String(port));
  for (const { ask } of nodes) {
    await until(async () => (await ask('CLUSTER', 'INFO')).includes('cluster_known_nodes:4'));
  }
  const slot = Number((await masters[0].ask('CLUSTER', 'KEYSLOT', key)).match(/:(\d+)/)?.[1]);
  const master = masters[Math.min(masters.length - 1, Math.floor((slot * masters.length) / slots))];
  const id = (await master.ask('CLUSTER', 'MYID')).match(/[0-9a-f]{40}/)?.[0] ?? '';
  await until(async () => (await replica.ask('CLUSTER', 'REPLICATE', id)).startsWith('+OK'));
  await until(async () => (await replica.ask('INFO', 'replication')).includes('master_link_status:up'));
  for (const { ask } of nodes) await until(async () => (await ask('CLUSTER', 'INFO')).includes('cluster_state:ok'));
  return {
    url: `redis+cluster://${masters.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    master,
    replica,
    others: masters.filter((each) => each !== master),
    stop: async () => void (await Promise.all(nodes.map(({ stop }) => stop()))),
  };
}

/** Whether the program is here. */
export async function isInstalled() {
  const asked = startChild(['redis-server', '--version'], { processor: processors.server, stdio: 'ignore' });
  asked.child.on('error', () => {});
  await Promise.race([asked.ended, once(asked.child, 'error')]).catch(() => undefined);
  return asked.child.exitCode === 0;
}
