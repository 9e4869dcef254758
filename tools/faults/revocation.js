// Two instances over one Redis end sessions while things go wrong. No token may pass later than a second after its logout was
// confirmed, and no other token may be refused.
import { setTimeout as sleep } from 'node:timers/promises';
import { askOnce } from '../load/asker.js';
import { processors } from '../shared/processes.js';
import { startProvider } from '../shared/provider.js';
import { startRedis, startSentinels } from '../shared/redis.js';
import { quantile } from '../shared/statistics.js';
import { signJws } from '../shared/tokens.js';
import { startService } from './service.js';
import { audience, makeEcKey } from './tokens.js';

/** Milliseconds after the confirmation of a logout. */
const bound = 1000;
/** Sessions of a row; four of five are ended. */
const sessionsPerRow = { full: 1500, quick: 250 };

const event = 'http://schemas.openid.net/event/backchannel-logout';
const now = () => Math.floor(Date.now() / 1000);

/** Opens the provider of all rows. `sessionOf(sid)` has an access token and a logout token. */
async function openProvider(identity) {
  // Cheaper to sign than RSA: rows need thousands of tokens.
  const key = makeEcKey('key-1');
  const provider = await startProvider({ identity, keys: [key], maxAge: undefined });
  const { domain, issuer } = provider;
  const sign = (typ, claims) =>
    signJws({ alg: 'ES256', kid: key.kid, typ }, { iss: issuer, iat: now(), ...claims }, key.privateKey);
  const token = (sid) => sign('at+jwt', { aud: audience, sub: 'user', sid, exp: now() + 3600, scope: 'read:messages' });
  const logoutToken = (sid) =>
    sign('logout+jwt', { aud: 'app', sid, jti: sid, exp: now() + 600, events: { [event]: {} } });
  return { domain, issuer, identity, token, logoutToken, stop: () => provider.stop() };
}

/** Starts an instance. Resolves when it is ready. */
async function startInstance(provider, redis) {
  const { identity } = provider;
  const environment = { LOGOUT_CLIENTS: 'app', REVOCATION_STORE: redis.url, ALGORITHMS: 'ES256' };
  // Two instances and what sends to them share all processors of the host.
  const instance = await startService({ provider, identity, environment, processor: processors.all });
  if (!(await instance.awaitReady(15))) throw new Error('the instance does not become ready');
  return instance;
}

/** Status of an access token, on a new connection. */
const ask = (instance, token) =>
  askOnce(instance, `GET /api/private HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`);

/** Status of a logout token, on a new connection. */
function logOut(instance, logoutToken) {
  const head = 'POST /backchannel-logout HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n';
  const length = `Content-Length: ${13 + logoutToken.length}\r\n\r\n`;
  return askOnce(instance, `${head}${length}logout_token=${logoutToken}`);
}

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
    while ((await logOut(pick(scene.instances), session.logout)) !== 200) {
      counts.retries++;
      await sleep(50);
    }
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
    const ended = sessions.filter(({ confirmedAt }) => confirmedAt < Infinity);
    let left = 0;
    for (const { token } of ended)
      for (const instance of scene.instances) if ((await ask(instance, token)) !== 401) left++;
    return { ...counts, left, confirmed: ended.length, waits };
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

/** Sends valid tokens to every instance while sessions end. Throws unless each gets 200. */
async function sendValid({ quick, load, provider, instances }) {
  const tokens = Array.from({ length: 50 }, (_, i) => provider.token(`valid-${i}`));
  const source = { type: 'fixed', path: '/api/private', tokens };
  const part = { rate: 500, connections: 24, kinds: [{ name: 'valid', weight: 1, expect: [200], source }] };
  await Promise.all(instances.map(({ port }) => load.start(`valid-${port}`, { port, ...part })));
  await sleep(quick ? 2000 : 10_000);
  for (const { port } of instances) {
    const { wrong, unexplained, lost } = await load.stop(`valid-${port}`);
    const refused = Object.keys({ ...wrong, ...unexplained });
    if (lost + refused.length > 0) throw new Error(`valid tokens: ${refused.join(', ')}; ${lost} lost`);
  }
}

/** Each row: the Redis, and what is played. `quick`: part of the short form. */
/** @type {Record<string, { quick?: boolean, open: () => Promise<any>, play: (scene: any, name: string) => Promise<any> }>} */
const rows = {
  undisturbed: { open: startRedis, play: during(async () => {}) },
  'under-load': { quick: true, open: startRedis, play: during(sendValid) },
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

function describe({ waits, ...counts }) {
  const { confirmed, retries, requests, accepted, refused, left, broken } = counts;
  waits.sort((a, b) => a - b);
  const p99 = quantile(waits, 0.99);
  return (
    `${confirmed} logouts (${retries} retried), ${requests} requests, ${accepted} accepted later than ${bound} ms, ` +
    `${refused} valid refused, ${left} accepted at the end, ${broken} broken connections, refused by all, p99 ${Math.round(p99)} ms`
  );
}
