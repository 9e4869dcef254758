// npm run bench -- redis-cluster: replay records in three real nodes of a cluster: proofs a second, bytes a proof, latency
// added, and what a failover loses.
import { hash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { proofLifetime } from '../../build/core/dpop/proof-checks.js';
import { createMemoryReplayStore } from '../../build/core/dpop/replay.js';
import { createRedisReplayStore } from '../../build/core/dpop/replay-redis.js';
import { makeFolder } from '../shared/folder.js';
import { until } from '../shared/network.js';
import { cpuTime, processors } from '../shared/processes.js';
import { isInstalled, startCluster, startRedis } from '../shared/redis.js';
import { quantile } from '../shared/statistics.js';
import { makeSay } from './progress.js';
import { savePart } from './publish.js';
import { formatCluster } from './redis-cluster-report.js';

const full = { proofs: 60_000, single: 4000, rounds: 5, failoverSeconds: 4 };
const quick = { proofs: 10_000, single: 1000, rounds: 2, failoverSeconds: 2 };
/** Proofs in flight at the same time, like one event-loop iteration of a busy service. */
const atOnce = 64;
/** Proofs a second while a failover is made. */
const failoverRate = 1000;
const namespace = 'bench';
/** All keys of a namespace carry it, so that they are in one slot. */
const slotKey = `{portcullis:${namespace}}`;
const now = () => Date.now() / 1000;

const makeProof = () => ({
  jkt: hash('sha256', randomUUID(), 'base64url'),
  jti: randomUUID(),
  until: Math.floor(now()) + proofLifetime,
});
const ask = (store, { jkt, jti, until: end }) => store.witness(jkt, jti, end);

/** Opens a store, and lets the second pass in which it began: it remembers nothing of proofs that were made before. */
async function openStore(url) {
  const store = await createRedisReplayStore(url, { namespace, timeout: 1 });
  await until(
    async () => store.connected && (await ask(store, makeProof())) === true,
    'the store did not accept a proof',
  );
  return store;
}

/** Records N new proofs, several at the same time. */
async function fill(store, count) {
  let left = count;
  const work = async () => {
    while (left-- > 0) {
      const answer = await ask(store, makeProof());
      if (answer !== true) throw new Error(`a new proof was not accepted: ${answer}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** Measures the cost of `count` proofs: in Redis, in the instance, and in bytes between them. */
async function measureThroughput(store, node, { proofs, rounds }) {
  await fill(store, proofs / 10);
  const before = { memory: await node.read('memory', 'used_memory'), ...(await readTraffic(node)) };
  const samples = [];
  for (let round = 0; round < rounds; round++) {
    const spent = { redis: cpuTime(node.pid), client: process.cpuUsage(), at: performance.now() };
    await fill(store, proofs / rounds);
    const { user, system } = process.cpuUsage(spent.client);
    samples.push({
      rate: (proofs / rounds / (performance.now() - spent.at)) * 1000,
      redis: (cpuTime(node.pid) - spent.redis) / (proofs / rounds),
      client: (user + system) / (proofs / rounds),
    });
  }
  const after = { memory: await node.read('memory', 'used_memory'), ...(await readTraffic(node)) };
  const perProof = (field) => (after[field] - before[field]) / proofs;
  return {
    samples,
    bytes: perProof('memory'),
    received: perProof('received'),
    sent: perProof('sent'),
    calls: perProof('calls'),
  };
}

async function readTraffic(node) {
  const stats = await node.command('INFO', 'commandstats');
  const calls = [...stats.matchAll(/^cmdstat_(?:get|set|time|info|evalsha):calls=(\d+)/gm)];
  return {
    received: await node.read('stats', 'total_net_input_bytes'),
    sent: await node.read('stats', 'total_net_output_bytes'),
    calls: calls.reduce((sum, [, count]) => sum + Number(count), 0),
  };
}

/** Milliseconds of one proof after the other. */
async function measureLatency(store, count) {
  const taken = [];
  for (let i = 0; i < count; i++) {
    const proof = makeProof();
    const startedAt = performance.now();
    await ask(store, proof);
    taken.push(performance.now() - startedAt);
  }
  const sorted = taken.slice(count / 4).sort((a, b) => a - b);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

/** Kills the master of the records while proofs come, and sends all that were accepted once more. */
async function measureFailover({ store, cluster, seconds }) {
  const accepted = [];
  const counts = { unavailable: 0, asked: 0 };
  const waiting = [];
  let lastBefore = 0;
  let firstAfter = 0;
  let killedAt = 0;
  const send = async (proof) => {
    const answer = await ask(store, proof);
    if (answer === true) {
      accepted.push(proof);
      if (killedAt === 0) lastBefore = performance.now();
    } else if (answer.reason === 'replay_store_unavailable') counts.unavailable++;
    else counts.asked++;
    // A response other than "unavailable" means that the replica was promoted.
    if (killedAt !== 0 && firstAfter === 0 && answer.reason !== 'replay_store_unavailable')
      firstAfter = performance.now();
  };
  const startedAt = performance.now();
  for (let sent = 0; firstAfter === 0 || performance.now() - firstAfter < seconds * 500; ) {
    for (const due = ((performance.now() - startedAt) * failoverRate) / 1000; sent < due; sent++)
      waiting.push(send(makeProof()));
    if (killedAt === 0 && performance.now() - startedAt > seconds * 500) {
      killedAt = performance.now();
      await cluster.master.kill();
    }
    if (performance.now() - startedAt > 30_000) throw new Error('no replica took over');
    await sleep(1);
  }
  await Promise.all(waiting);
  const again = { seen: 0, asked: 0, accepted: 0 };
  for (const proof of accepted) {
    const answer = await ask(store, proof);
    if (answer === false) again.seen++;
    else if (answer === true) again.accepted++;
    else again.asked++;
  }
  return { ...counts, accepted: accepted.length, again, unavailableSeconds: (firstAfter - lastBefore) / 1000 };
}

/** Prints the tables; kept with `write`. `false` where a proof was accepted twice. */
export async function bench({ quick: isQuick, write }) {
  if (!(await isInstalled()))
    throw new RangeError('The bench needs redis-server (Debian: apt-get install redis-server).');
  const settings = isQuick ? quick : full;
  const say = makeSay();
  const folder = makeFolder('cluster');
  const opened = [];
  const keep = (each) => {
    opened.push(each);
    return each;
  };
  try {
    const stores = {
      memory: { latency: await measureLatency(createMemoryReplayStore({ since: 0 }), settings.single) },
    };
    say('one Redis');
    const node = keep(await startRedis(folder, { processor: processors.server }));
    const single = await openStore(`redis://127.0.0.1:${node.port}`);
    stores.single = {
      ...(await measureThroughput(single, node, settings)),
      latency: await measureLatency(single, settings.single),
    };
    single.close();
    say('a cluster of three masters');
    const cluster = keep(await startCluster(folder, slotKey));
    const store = await openStore(cluster.url);
    const spent = cluster.others.map(({ pid }) => cpuTime(pid));
    stores.cluster = {
      ...(await measureThroughput(store, cluster.master, settings)),
      latency: await measureLatency(store, settings.single),
    };
    const idle = cluster.others.reduce((sum, { pid }, i) => sum + cpuTime(pid) - spent[i], 0) / settings.proofs;
    say('a failover');
    const failover = await measureFailover({ store, cluster, seconds: settings.failoverSeconds });
    store.close();
    const part = { date: new Date().toISOString(), settings, stores, others: idle, failover };
    console.log(`\n${formatCluster(part)}\n`);
    if (write && !isQuick) savePart('cluster', part);
    return failover.again.accepted === 0;
  } finally {
    await Promise.all(opened.map(({ stop }) => stop()));
  }
}
