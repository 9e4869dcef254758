// What happens to the Redis that remembers the proofs.
import { openAsker } from '../load/asker.js';
import { openSource } from '../load/sources.js';
import { startRedis, startSentinels, startTlsRedis } from '../shared/redis.js';
import { makeEcKey } from './tokens.js';

const path = '/api/private';
/** Share of the constant rate: each proof costs two signature checks and two signatures, and is sent twice. */
const proofShare = 0.03;
/** Share of the constant rate in addition to the proofs: an overloaded service reads the replies of Redis too late. */
const bearerShare = 0.5;
/** Seconds after a loss until a proof that is made now is surely younger (docs/behaviour.md §5). */
const horizonSeconds = 2.5;

function makeProofs(scene) {
  const holder = makeEcKey('holder');
  const { kty, crv, x, y } = holder.jwk;
  return { type: 'proven', path, token: scene.mintBound(holder), pem: holder.pem, jwk: { kty, crv, x, y } };
}

/** On connections of their own: while these calls wait for Redis, Bearer must not. */
function sendProofs(scene, source) {
  return scene.send('proofs', {
    rate: Math.ceil(scene.undisturbed.rate * proofShare),
    connections: 64,
    kinds: [
      { name: 'proof', weight: 1, expect: [200], again: 'proof again', source },
      { name: 'proof again', weight: 0, expect: [401], source: { type: 'fixed', path, tokens: [] } },
    ],
  });
}

/**
 * Redis has 250 ms (docs/behaviour.md §5): where the machine gave it less, or the service, whose Bearer calls do not wait for
 * Redis, the refusals outside the outage are the machine's.
 */
function excuseSlowMachine(scene, { proofs, steady }) {
  const { slowest } = scene.setup.redis;
  if (slowest <= 0.2 && steady.p99 <= 200) return;
  if (slowest > 0.2) scene.note(`Redis itself took up to ${Math.round(slowest * 1000)} ms for a reply`);
  if (steady.p99 > 200) scene.note('the machine was too busy for the 250 ms that Redis has');
  for (const kind of ['proof 503', 'proof again 503']) delete proofs.unexplained[kind];
}

/**
 * A row of a Redis that is disturbed under load. `disturb` makes the fault and resolves when new proofs succeed again; it may
 * return a note. `kinds` are responses that must have been seen.
 *
 * @param {{ disturb: (scene: any, source: any) => Promise<any>, note?: string, kinds?: string[], [more: string]: any }} about
 * @returns {any}
 */
const row = ({ disturb, note, kinds = ['proof 200', 'proof again 401', 'proof 503'], ...described }) => ({
  ...described,
  async play(scene) {
    const source = makeProofs(scene);
    await scene.begin({ share: bearerShare });
    await sendProofs(scene, source);
    await scene.sleep(scene.pace(3, 1.5));
    const found = await disturb(scene, source);
    await scene.load.expect('proofs', { proof: [200], 'proof again': [401] });
    await scene.sleep(scene.pace(3, 1.5));
    scene.note(found ?? note);
  },
  check(scene, reports) {
    excuseSlowMachine(scene, reports);
    for (const kind of kinds) scene.demand(reports.proofs.byKind[kind] > 0, `no response like "${kind}"`);
  },
});

async function demandUp(scene, complaint) {
  scene.demand(await scene.service.awaitLines('replay_store_up', 2, 30), complaint);
}

const killed = ({ start, ...described }) =>
  row({
    ...described,
    note: 'Bearer is never touched; DPoP is 503 while Redis is away',
    open: async (bench) => {
      const { redis, environment } = await start(bench);
      return { redis, environment: { REPLAY_STORE: redis.url, ...environment }, stop: redis.stop };
    },
    async disturb(scene) {
      const { redis } = scene.setup;
      await scene.load.expect('proofs', { proof: [200, 503], 'proof again': [401, 503] });
      await redis.kill();
      await scene.sleep(3);
      await redis.restart();
      scene.faultEnds();
      await demandUp(scene, 'the service has not connected to Redis again');
      // Proofs made until two seconds after its return are refused: Redis may have forgotten them.
      await scene.sleep(horizonSeconds);
    },
  });

const redisKilled = killed({
  name: 'redis-killed',
  title: 'Redis killed, back after 3 s',
  start: async () => ({ redis: await startRedis({ probes: true }) }),
});

const redisTls = killed({
  name: 'redis-tls',
  title: 'Redis with TLS killed, back after 3 s',
  start: async ({ identity }) => ({ redis: await startTlsRedis(identity) }),
});

const failover = ({ credentials = {}, environment = {}, ...described }) =>
  row({
    ...described,
    kinds: ['proof 200', 'proof 401', 'proof 503', 'proof again 401'],
    open: async () => {
      const redis = await startSentinels(credentials);
      const secret = 'a secret of the faults, of more than 32 bytes';
      const settings = { REPLAY_STORE: redis.url, DPOP_NONCE_SECRET: secret, ...environment };
      return { redis, environment: settings, stop: redis.stop };
    },
    async disturb(scene, source) {
      const { redis } = scene.setup;
      // What the master alone remembers is lost with it: just these proofs are sent again.
      await redis.part();
      const asker = openAsker(scene.service.port);
      const next = openSource({ ...source, jti: 'lost' }, `127.0.0.1:${scene.service.port}`);
      const used = [];
      for (let sent = 0; sent < scene.pace(100, 30); sent++) {
        const proof = next();
        if ((await asker.ask(proof)).status === 200) used.push(proof);
      }
      scene.demand(used.length > 0, 'no proof was accepted before the failover');
      await scene.load.expect('proofs', { proof: [200, 401, 503], 'proof again': [401, 503] });
      await redis.failOver();
      await demandUp(scene, 'the service has not found the new master');
      let asked = 0;
      for (const proof of used) {
        const { status, head } = await askUntilJudged(asker, proof);
        scene.demand(status === 401, `a proof that was used before the failover got ${status}`);
        if (head.includes('use_dpop_nonce')) asked++;
      }
      asker.close();
      scene.faultEnds();
      await scene.sleep(horizonSeconds);
      scene.demand(asked > 0, 'the replica lacked nothing, so nothing was shown');
      return `a sentinel; ${used.length} proofs that only the old master knew were sent again: ${asked} got a nonce challenge, none passed; Bearer is never affected`;
    },
  });

const redisFailover = failover({
  name: 'redis-failover',
  title: 'Redis fails over to a replica that lacks the last proofs',
});

const redisSentinelCredentials = failover({
  name: 'redis-sentinel-credentials',
  title: 'The same with credentials for Redis and others for the sentinel',
  credentials: {
    password: 'redis-of-the-faults',
    sentinelPassword: 'sentinel-of-the-faults',
  },
  environment: { SENTINEL_PASSWORD: 'sentinel-of-the-faults' },
});

/** Redis runs, and fails every proof for 3 s. */
const redisFails = ({ fail, mend, staysConnected = false, isLost = false, ...described }) =>
  row({
    ...described,
    note: 'Bearer is never affected; DPoP is 503 meanwhile',
    open: async () => {
      const redis = await startRedis();
      return { redis, environment: { REPLAY_STORE: redis.url }, stop: redis.stop };
    },
    async disturb(scene) {
      await scene.load.expect('proofs', { proof: [200, 503], 'proof again': [401, 503] });
      const held = await scene.setup.redis.hold();
      for (const words of fail) await held.command(...words);
      const isDown = staysConnected || (await scene.service.awaitLines('replay_store_down', 1, 10));
      scene.demand(isDown, 'the service has not noticed that the connection is lost');
      await scene.sleep(3);
      await held.command(...mend);
      held.close();
      scene.faultEnds();
      if (!staysConnected) await demandUp(scene, 'the service has not connected to Redis again');
      // As after a restart: the service cannot know that Redis has kept its records.
      if (isLost) await scene.sleep(horizonSeconds);
    },
  });

const redisFull = redisFails({
  name: 'redis-full',
  title: 'Redis out of memory for 3 s',
  fail: [['CONFIG', 'SET', 'maxmemory', '1']],
  mend: ['CONFIG', 'SET', 'maxmemory', '0'],
  staysConnected: true,
});

const redisSlow = redisFails({
  name: 'redis-slow',
  title: 'Redis slower than `REPLAY_TIMEOUT` for 5 s',
  fail: [['CLIENT', 'PAUSE', '5000', 'ALL']],
  // Its reply is the first one after the pause.
  mend: ['PING'],
});

const redisMaxclients = redisFails({
  name: 'redis-maxclients',
  title: 'Redis closes its connections and accepts no other (`maxclients`) for 3 s',
  fail: [
    ['CONFIG', 'SET', 'maxclients', '1'],
    ['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'],
  ],
  mend: ['CONFIG', 'SET', 'maxclients', '10000'],
  isLost: true,
});

/** Repeats the request while Redis is unreachable. */
async function askUntilJudged(asker, proof) {
  for (let tries = 0; ; tries++) {
    const answer = await asker.ask(proof);
    if (answer.status !== 503 || tries === 20) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Rows of Redis. */
export const redisRows = [
  ...[redisKilled, redisTls, redisFull, redisSlow, redisMaxclients],
  ...[redisFailover, redisSentinelCredentials],
];
