import { createClient } from '@redis/client';
import { afterEach, describe, expect, it } from 'vitest';
import { encodeMark } from '../../src/revocation/record.ts';
import { createRedisRevocationStore } from '../../src/revocation/redis-store.ts';
import { createRevocations, readRevocations } from '../../src/revocation/revocations.ts';
import { needs } from '../support/programs.ts';
import { startTestRedis } from '../support/redis.ts';
import { startCluster, startSentinels } from '../support/redis-groups.ts';
import { until } from '../support/redis-store.ts';

const issuer = 'https://idp.example/';
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** One instance. */
async function open(target: Parameters<typeof createRedisRevocationStore>[0], stale: 'accept' | 'refuse' = 'accept') {
  const states: string[] = [];
  const store = await createRedisRevocationStore(target, { timeout: 1, onConnection: (state) => states.push(state) });
  const revocations = createRevocations({ store, stale });
  closers.push(() => revocations.close());
  const { check } = readRevocations('test', revocations);
  const now = Math.floor(Date.now() / 1000);
  const refuses = (sub: string): boolean => {
    const checked = check({ iss: issuer, sub, iat: now - 10, exp: now + 60 });
    return typeof checked === 'object' && checked.reason === 'revoked_token';
  };
  return { revocations, store, states, refuses, revoke: (sub: string) => revocations.revoke({ issuer, sub }) };
}

async function redis(...flags: readonly string[]) {
  const started = await startTestRedis({ flags });
  closers.push(() => started.stop());
  return started;
}

describe('a store in Redis', needs('redis-server'), () => {
  it('a cutoff of one instance → refused by the others, and by one that starts later', async () => {
    const { url } = await redis();
    const [first, second] = [await open(url), await open(url)];
    await Promise.all([first.revocations.ready(), second.revocations.ready()]);
    await first.revoke('ann');
    expect(first.refuses('ann')).toBe(true);
    await until(() => second.refuses('ann'));
    const third = await open(url);
    await third.revocations.ready();
    expect(third.refuses('ann')).toBe(true);
    expect(third.refuses('bob')).toBe(false);
  });

  it('10,000 cutoffs in the middle of a start → none is missed', async () => {
    const { url } = await redis();
    const writer = await open(url);
    await writer.revocations.ready();
    const writes = Array.from({ length: 10_000 }, (_, i) => writer.revoke(`user-${i}`));
    const late = await open(url);
    await late.revocations.ready();
    await Promise.all(writes);
    await until(() => late.revocations.status().cutoffs === 10_000);
  });

  it('every key begins with the prefix', async () => {
    const server = await redis();
    const { revocations, revoke, store } = await open(server.url);
    await revocations.ready();
    await revoke('ann');
    await store.lease('task', 5);
    const keys = (await server.command('KEYS', '*')).split('\r\n').filter((line) => /^[^*$+]/.test(line));
    expect(keys.length).toBe(4);
    expect(keys.filter((key) => !key.startsWith('portcullis:revocation:'))).toEqual([]);
  });

  it('Redis is unreachable → known cutoffs still apply, a new one is rejected, and the connection comes back', async () => {
    const server = await redis();
    const { revocations, refuses, revoke, states } = await open(server.url);
    await revocations.ready();
    await revoke('ann');
    await server.kill();
    await until(() => states.at(-1) === 'down');
    expect(refuses('ann')).toBe(true);
    await expect(revoke('bob')).rejects.toThrow();
    await server.restart();
    await until(() => states.at(-1) === 'up');
    await revoke('bob');
  });

  it('Redis restarts empty → the instances write their cutoffs back', async () => {
    const server = await redis();
    const one = await open(server.url);
    await one.revocations.ready();
    for (let i = 0; i < 1200; i++) await one.revoke(`user-${i}`);
    await server.restart();
    await until(async () => (await server.command('HLEN', 'portcullis:revocation:{all}:records')).startsWith(':1200'));
    const fresh = await open(server.url);
    await fresh.revocations.ready();
    expect(fresh.refuses('user-1199')).toBe(true);
  });

  it('FLUSHALL while connected → written back', async () => {
    const server = await redis();
    const one = await open(server.url);
    await one.revocations.ready();
    await one.revoke('ann');
    await server.command('FLUSHALL');
    await until(async () => (await server.command('HLEN', 'portcullis:revocation:{all}:records')).startsWith(':1\r'));
  });

  it('Redis hangs → noticed, and what was written meanwhile arrives with the snapshot', async () => {
    const server = await redis();
    const one = await open(server.url);
    await one.revocations.ready();
    server.freeze();
    await until(() => one.states.at(-1) === 'down');
    expect(one.revocations.status().secondsWithoutContact).toBeGreaterThan(1);
    server.thaw();
    const other = await open(server.url);
    await other.revocations.ready();
    await other.revoke('ann');
    await until(() => one.refuses('ann'));
  });

  it('a cutoff that is received again → retained longer by every instance, and by one that starts later', async () => {
    const { url } = await redis();
    const [first, second] = [await open(url), await open(url)];
    await Promise.all([first.revocations.ready(), second.revocations.ready()]);
    const now = Math.floor(Date.now() / 1000);
    const write = (until: number) => first.store.write([[issuer, 'sid', 's1', encodeMark(now, 'logout'), until]]);
    const retainedBy = ({ revocations }: typeof first): number =>
      Math.max(0, ...[...readRevocations('test', revocations).records()].map(([, , , , until]) => until));
    await write(now + 100);
    await until(() => retainedBy(second) >= now + 100);
    expect(retainedBy(second)).toBeLessThan(now + 10_000);
    await write(now + 10_000);
    await until(() => retainedBy(second) >= now + 10_000);
    const third = await open(url);
    await third.revocations.ready();
    expect(retainedBy(third)).toBeGreaterThanOrEqual(now + 10_000);
  });

  it('a lease → one holder, who can prolong it', async () => {
    const { url } = await redis();
    const [first, second] = [await open(url), await open(url)];
    await Promise.all([first.revocations.ready(), second.revocations.ready()]);
    expect(await first.store.lease('task', 1)).toBe(true);
    expect(await second.store.lease('task', 1)).toBe(false);
    expect(await first.store.lease('task', 0.1)).toBe(true);
    await until(() => second.store.lease('task', 1));
  });

  it('a connected client → shared, and left connected', async () => {
    const { url } = await redis();
    const client = createClient({ url });
    client.on('error', () => undefined);
    await client.connect();
    closers.push(() => client.close());
    const [first, second] = [await open(client), await open(url)];
    await Promise.all([first.revocations.ready(), second.revocations.ready()]);
    await second.revoke('ann');
    await until(() => first.refuses('ann'));
    first.revocations.close();
    expect(await client.ping()).toBe('PONG');
  });

  it('foreign entries in its keys → ignored', async () => {
    const server = await redis();
    await server.command('HSET', 'portcullis:revocation:{all}:records', 'nonsense', 'x');
    await server.command('HSET', 'portcullis:revocation:{all}:records', '["a","sub","b"]', 'x y');
    const one = await open(server.url);
    await one.revocations.ready();
    await server.command('PUBLISH', 'portcullis:revocation:{all}:changes', 'nonsense');
    await one.revoke('ann');
    expect(one.revocations.status().cutoffs).toBe(1);
  });
});

describe('groups of Redis', needs('redis-server', 'redis-sentinel'), () => {
  it('sentinels: a failover → cutoffs of before and after apply everywhere', { timeout: 60_000 }, async () => {
    const group = await startSentinels();
    closers.push(() => group.stop());
    const [first, second] = [await open(group.url), await open(group.url)];
    await Promise.all([first.revocations.ready(), second.revocations.ready()]);
    await first.revoke('before');
    await until(() => second.refuses('before'));
    await group.failOver('portcullis:revocation:{all}:records');
    await until(() =>
      first.revoke('after').then(
        () => true,
        () => false,
      ),
    );
    await until(() => second.refuses('after'));
    const fresh = await open(group.url);
    await fresh.revocations.ready();
    expect([fresh.refuses('before'), fresh.refuses('after')]).toEqual([true, true]);
  });

  it('a cluster → cutoffs apply everywhere', { timeout: 60_000 }, async () => {
    const group = await startCluster();
    closers.push(() => group.stop());
    const [first, second] = [await open(group.url), await open(group.url)];
    await Promise.all([first.revocations.ready(), second.revocations.ready()]);
    await first.revoke('ann');
    await until(() => second.refuses('ann'));
  });
});
