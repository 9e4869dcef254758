// Two instances over one Redis end sessions while things go wrong. No token may pass later than a second after its logout was
// confirmed, and no other token may be refused.
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis, startSentinels } from '../shared/redis.js';
import { quantile } from '../shared/statistics.js';
import { countAccepted, insist, loadRows } from './revocation-load.js';
import { ask, logOut, openProvider, startInstance } from './revocation-scene.js';

/** Milliseconds after the confirmation of a logout. */
const bound = 1000;
/** Sessions of a row; four of five are ended. */
const sessionsPerRow = { full: 1500, quick: 250 };

/** Ends sessions one after the other while all tokens are sent again and again, and counts what must not happen. */
function play(scene, name) {
  const { provider, quick } = scene;
  const count = quick ? sessionsPerRow.quick : sessionsPerRow.full;
  const sessions = Array.from({ length: count }, (_, i) => {
    const sid = `${name}-${i}`;
    const tokens = { token: provider.token(sid), logout: provider.logoutToken(sid) };
    return { ...tokens, triedAt: Infinity, confirmedAt: Infinity };
  });
  const counts = { requests: 0, accepted: 0, refused: 0, broken: 0, retries: 0 };
  /** Milliseconds from each confirmation until every instance has refused. */
  const waits = [];
  let isOver = false;
  const pick = (list) => list[Math.floor(Math.random() * list.length)];

  const check = async () => {
    while (!isOver) {
      const session = pick(sessions);
      const sentAt = performance.now();
      const status = await ask(pick(scene.instances), session.token);
      counts.requests++;
      if (status === 0) counts.broken++;
      else if (status === 200 && sentAt > session.confirmedAt + bound) counts.accepted++;
      else if (status !== 200 && performance.now() < session.triedAt) counts.refused++;
    }
  };
  const revoke = async (session) => {
    session.triedAt = performance.now();
    await insist(counts, async () => ({ status: await logOut(pick(scene.instances), session.logout) }));
    session.confirmedAt = performance.now();
    for (const instance of [...scene.instances])
      while ((await ask(instance, session.token)) !== 401 && scene.instances.includes(instance));
    waits.push(performance.now() - session.confirmedAt);
  };
  const revokeAll = async () => {
    for (const session of sessions.slice(0, Math.floor(count * 0.8))) {
      await revoke(session);
      await sleep(4);
    }
  };
  const finish = async () => {
    await sleep(bound + 200);
    isOver = true;
    const ended = sessions.filter(({ confirmedAt }) => confirmedAt < Infinity).map(({ token }) => token);
    return { ...counts, left: await countAccepted(scene, ended), confirmed: ended.length, waits };
  };
  return { revokeAll, finish, begin: () => Promise.all(Array.from({ length: 6 }, check)) };
}

/** Plays a fault a second after the logouts have begun. */
const during = (fault) => async (scene, name) => {
  const played = play(scene, name);
  const checking = played.begin();
  const revoking = played.revokeAll();
  await sleep(1000);
  await fault(scene);
  await revoking;
  const result = await played.finish();
  await checking;
  return result;
};

/** Each row: the Redis, and what is played. `quick`: part of the short form. */
/** @type {Record<string, { quick?: boolean, open: () => Promise<any>, play: (scene: any, name: string) => Promise<any> }>} */
const rows = {
  undisturbed: { open: startRedis, play: during(async () => {}) },
  ...loadRows,
  'redis-killed': {
    quick: true,
    open: startRedis,
    play: during(async ({ redis }) => {
      await redis.kill();
      await sleep(2000);
      await redis.restart();
    }),
  },
  'redis-failover': { open: startSentinels, play: during(({ redis }) => redis.failOver()) },
  'redis-slow': {
    open: startRedis,
    play: during(async ({ redis }) => {
      for (let i = 0; i < 5; i++) {
        await redis.command('CLIENT', 'PAUSE', '800', 'ALL');
        await sleep(1200);
      }
    }),
  },
  'stopped-during-logouts': {
    open: startRedis,
    play: during(async (scene) => {
      const [first] = scene.instances;
      scene.instances.shift();
      await first.stop();
      scene.instances.push(await startInstance(scene.provider, scene.redis));
    }),
  },
  'started-amid-10000-cutoffs': {
    open: startRedis,
    play: during(async (scene) => {
      const { createRevocations, createRedisRevocationStore } = await import('../../dist/index.js');
      const revocations = createRevocations({ store: await createRedisRevocationStore(scene.redis.url) });
      await revocations.ready();
      const writes = Array.from({ length: 10_000 }, (_, i) =>
        revocations.revoke({ issuer: scene.provider.issuer, sub: `other-${i}` }),
      );
      const start = () => startInstance(scene.provider, scene.redis);
      scene.instances.push(...(await Promise.all([start(), start()])));
      await Promise.all(writes);
      revocations.close();
    }),
  },
};

/** Names of the rows, or of the short form. */
export const namesOf = ({ quick }) => Object.keys(rows).filter((name) => !quick || rows[name]?.quick === true);
export const revocationNames = Object.keys(rows);

/** Plays rows, prints a line for each, and resolves with the number of rows that were broken. */
export async function playRevocations(names, { quick, identity, load }) {
  const provider = await openProvider(identity);
  let broken = 0;
  for (const name of names) {
    const { open, play: playRow } = rows[name];
    const redis = await open();
    const instances = await Promise.all([startInstance(provider, redis), startInstance(provider, redis)]);
    const scene = { quick, load, provider, redis, instances };
    let text;
    try {
      const result = await playRow(scene, name);
      const isClean = result.accepted === 0 && result.refused === 0 && result.left === 0;
      text = `${isClean ? 'ok  ' : 'FAIL'} ${name}: ${describe(result)}`;
      if (!isClean) broken++;
    } catch (error) {
      // What the row is to show was not seen.
      broken++;
      text = `FAIL ${name}: ${error.message}`;
    }
    process.stdout.write(`${text}\n`);
    await Promise.all(scene.instances.map(({ stop }) => stop()));
    await redis.stop();
  }
  await provider.stop();
  return broken;
}

function describe({ waits, note = 'refused by all, p99', ...counts }) {
  const { confirmed, retries, requests, accepted, refused, left, broken } = counts;
  waits.sort((a, b) => a - b);
  const p99 = quantile(waits, 0.99);
  return (
    `${confirmed} logouts (${retries} retried), ${requests} requests, ${accepted} accepted later than ${bound} ms, ` +
    `${refused} valid refused, ${left} accepted at the end, ${broken} broken connections, ${note} ${Math.round(p99)} ms`
  );
}
