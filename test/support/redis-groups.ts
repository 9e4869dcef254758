import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../tools/shared/network.js';
import { requireProgram } from './programs.ts';
import { startTestRedis, type TestRedis } from './redis.ts';
import { until } from './redis-store.ts';

/** Several processes of Redis that stand for one. */
export interface RedisGroup {
  /** For `REPLAY_STORE`. */
  readonly url: string;
  /** The process that has the records of one key now. */
  findMaster(key: string): Promise<TestRedis>;
  /** Kills a master and waits until another has taken over. */
  failOver(key: string): Promise<void>;
  stop(): Promise<void>;
}

/** Passwords of a group with sentinels. */
export interface SentinelPasswords {
  /** For Redis itself. */
  readonly password?: string;
  /** For the sentinel. */
  readonly sentinelPassword?: string;
}

/** Starts a master, its replica and a sentinel. */
export async function startSentinels({ password, sentinelPassword }: SentinelPasswords = {}): Promise<RedisGroup> {
  const own = password === undefined ? {} : { password };
  const auth = password === undefined ? [] : ['--masterauth', password];
  const master = await startTestRedis({ ...own, flags: auth });
  const replica = await startTestRedis({ ...own, flags: [...auth, '--replicaof', '127.0.0.1', String(master.port)] });
  await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'));
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-sentinel-'));
  const port = await findFreePort();
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor gate 127.0.0.1 ${master.port} 1`,
    'sentinel down-after-milliseconds gate 500',
    'sentinel failover-timeout gate 3000',
    ...(password === undefined ? [] : [`sentinel auth-pass gate ${password}`]),
    ...(sentinelPassword === undefined ? [] : [`requirepass ${sentinelPassword}`]),
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  const sentinel = spawn(requireProgram('redis-sentinel'), [file], { stdio: 'ignore' });
  const ask = (...words: readonly string[]): Promise<string> => command(port, words, sentinelPassword);
  const findPort = async (): Promise<number> =>
    Number((await ask('SENTINEL', 'get-master-addr-by-name', 'gate')).split('\r\n')[4]);
  await until(async () => (await ask('SENTINEL', 'replicas', 'gate').catch(() => '')).includes(String(replica.port)));
  const findMaster = async (): Promise<TestRedis> => ((await findPort()) === master.port ? master : replica);
  return {
    url: `redis+sentinel://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}/gate`,
    findMaster,
    async failOver() {
      const old = await findMaster();
      await old.kill();
      await until(async () => (await findMaster()) !== old);
    },
    async stop() {
      await end(sentinel);
      await Promise.all([master.stop(), replica.stop()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a cluster of three masters, each of which has a replica. */
export async function startCluster(): Promise<RedisGroup> {
  const flags = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '800', '--cluster-replica-validity-factor', '0'];
  const nodes = await Promise.all(Array.from({ length: 6 }, () => startTestRedis({ flags })));
  const [first, ...others] = nodes;
  if (first === undefined) throw new Error('There is no node.');
  const masters = nodes.slice(0, 3);
  const bounds = [0, 5461, 10_923, 16_384];
  for (const [index, node] of masters.entries()) {
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(bounds[index]), String((bounds[index + 1] ?? 0) - 1));
  }
  for (const node of others) await first.command('CLUSTER', 'MEET', '127.0.0.1', String(node.port));
  const knowsAll = async (node: TestRedis): Promise<boolean> =>
    (await node.command('CLUSTER', 'INFO')).includes('cluster_known_nodes:6');
  for (const node of nodes) await until(() => knowsAll(node));
  const ids = await Promise.all(
    nodes.map(async (node) => /[0-9a-f]{40}/.exec(await node.command('CLUSTER', 'MYID'))?.[0]),
  );
  for (const [index, node] of nodes.slice(3).entries()) {
    await until(async () => (await node.command('CLUSTER', 'REPLICATE', ids[index] ?? '')).startsWith('+OK'));
  }
  for (const node of nodes.slice(3)) {
    await until(async () => (await node.command('INFO', 'replication')).includes('master_link_status:up'));
  }
  for (const node of nodes) {
    await until(async () => (await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok'));
  }
  const findMaster = async (key: string): Promise<TestRedis> => {
    for (const node of nodes) {
      const answer = await node.command('SET', key, 'probe').catch(() => '');
      if (answer.startsWith('+OK')) return node;
    }
    throw new Error('No node has the key now.');
  };
  return {
    url: `redis+cluster://${masters.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    findMaster,
    async failOver(key) {
      const old = await findMaster(key);
      await old.kill();
      await until(() =>
        findMaster(key).then(
          (found) => found !== old,
          () => false,
        ),
      );
    },
    stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))),
  };
}

async function command(port: number, words: readonly string[], password?: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.setEncoding('latin1');
  // A sentinel knows no QUIT.
  socket.end(`${password === undefined ? '' : `AUTH ${password}\r\n`}${words.join(' ')}\r\n`);
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  return password === undefined ? answer : answer.replace(/^\+OK\r\n/, '');
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
