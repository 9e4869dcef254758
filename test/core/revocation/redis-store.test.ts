import { createClient } from '@redis/client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { encodeMark } from '../../../src/core/revocation/record.ts';
import { createRedisRevocationStore } from '../../../src/core/revocation/redis-store.ts';
import { createRevocations, readRevocations } from '../../../src/core/revocation/revocations.ts';
import { until } from '../../../tools/shared/network.js';
import { startCluster, startSentinels } from '../../../tools/shared/redis.js';
import { needs } from '../../support/programs.ts';
import { addDocumentedUser, startTestRedis } from '../../support/redis.ts';
import { stall } from '../../support/stall.ts';

const issuer = 'https://idp.example/';
/** One instance. Its time limit is long, as the machine may be busy. */
async function open(target: Parameters<typeof createRedisRevocationStore>[0], stale: 'accept' | 'refuse' = 'accept') {
  const states: string[] = [];
  const store = await createRedisRevocationStore(target, { timeout: 10, onConnection: (state) => states.push(state) });
  const revocations = createRevocations({ store, stale });
  onTestFinished(() => void revocations.close());
  const { check } = readRevocations('test', revocations);
  const now = Math.floor(Date.now() / 1000);
  const refuses = (sub: string): boolean => {
    const checked = check({ iss: issuer, sub, iat: now - 10, exp: now + 60 });
    return typeof checked === 'object' && checked.reason === 'revoked_token';
  };
  return { revocations, store, states, refuses, revoke: (sub: string) => revocations.revoke({ issuer, sub }) };
}

/** One instance that has loaded everything. */
async function instance(...target: Parameters<typeof open>) {
  const opened = await open(...target);
  await opened.revocations.ready();
  return opened;
}

async function redis(...flags: readonly string[]) {
  const started = await startTestRedis({ flags });
  onTestFinished(async () => void (await started.stop()));
  return started;
}

describe('a store in Redis', needs('redis-server'), () => {
  it('a cutoff of one instance → refused by the others, and by one that starts later', async () => {
    const { url } = await redis();
    const [first, second] = [await instance(url), await instance(url)];
    await first.revoke('ann');
    expect(first.refuses('ann')).toBe(true);
    await until(() => second.refuses('ann'));
    const third = await instance(url);
    expect([third.refuses('ann'), third.refuses('bob')]).toEqual([true, false]);
  });

  it('10,000 cutoffs in the middle of a start → none is missed', async () => {
    const { url } = await redis();
    const writer = await instance(url);
    const writes = Promise.all(Array.from({ length: 10_000 }, (_, i) => writer.revoke(`user-${i}`)));
    const [late] = await Promise.all([instance(url), writes]);
    await until(() => late.revocations.status().cutoffs === 10_000);
  });

  it('a stall of this process with writes in flight → all are stored, over the same connection', async () => {
    const one = await instance((await redis()).url);
    const writes = Promise.all(Array.from({ length: 1000 }, (_, i) => one.revoke(`user-${i}`)));
    stall(2600);
    await writes;
    expect(one.states).toEqual(['up']);
  });

  it('a user with the commands that the documentation names → stores, loads and repairs', async () => {
    const server = await redis();
    const url = await addDocumentedUser(server, 'docs/other-proofs.md', 'portcullis:revocation:*');
    const [one, other] = [await instance(url), await instance(url)];
    await one.revoke('ann');
    await until(() => other.refuses('ann'));
    await server.command('EXPIRE', 'portcullis:revocation:{all}:records', '60');
    await server.command('HSET', 'portcullis:revocation:{all}:records', 'nonsense', 'x');
    await server.command('SET', 'portcullis:revocation:{all}:untils', 'x');
    await one.revoke('bob');
    const third = await instance(url);
    expect([third.refuses('ann'), third.refuses('bob')]).toEqual([true, true]);
    await until(async () => (await server.command('HLEN', 'portcullis:revocation:{all}:records')).startsWith(':2\r'));
    expect((await server.command('ACL', 'LOG')).split('\r\n')[0]).toBe('*0');
  });

  it('every key begins with the prefix', async () => {
    const server = await redis();
    const { revoke } = await instance(server.url);
    await revoke('ann');
    const keys = (await server.command('KEYS', '*')).split('\r\n').filter((line) => /^[^*$+]/.test(line));
    expect([keys.length, keys.filter((key) => !key.startsWith('portcullis:revocation:'))]).toEqual([4, []]);
  });

  it('Redis is unreachable → known cutoffs still apply, a new one is rejected, and the connection comes back', async () => {
    const server = await redis();
    const { refuses, revoke, states } = await instance(server.url);
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
    const one = await instance(server.url);
    for (let i = 0; i < 1200; i++) await one.revoke(`user-${i}`);
    await server.restart();
    await until(async () => (await server.command('HLEN', 'portcullis:revocation:{all}:records')).startsWith(':1200'));
    const fresh = await instance(server.url);
    expect(fresh.refuses('user-1199')).toBe(true);
  });

  it('Redis hangs → noticed, and what was written meanwhile arrives with the snapshot', async () => {
    const server = await redis();
    const one = await instance(server.url);
    server.freeze();
    await until(() => one.states.at(-1) === 'down');
    expect(one.revocations.status().secondsWithoutContact).toBeGreaterThan(1);
    server.thaw();
    const other = await instance(server.url);
    await other.revoke('ann');
    await until(() => one.refuses('ann'));
  });

  it('a stall of this process → the connection stays, with what has arrived on it', async () => {
    const one = await instance((await redis()).url);
    const real = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => real() + 10_000);
    onTestFinished(() => void clock.mockRestore());
    expect(one.revocations.status().secondsWithoutContact).toBeGreaterThan(5);
    await until(() => one.revocations.status().secondsWithoutContact < 5);
    expect(one.states).toEqual(['up']);
  });

  it('a cutoff that is received again → retained longer by every instance, and by one that starts later', async () => {
    const { url } = await redis();
    const [first, second] = [await instance(url), await instance(url)];
    const now = Math.floor(Date.now() / 1000);
    const write = (until: number) => first.store.write([[issuer, 'sid', 's1', encodeMark(now, 'logout'), until]]);
    const retainedBy = ({ revocations }: typeof first): number =>
      Math.max(0, ...[...readRevocations('test', revocations).records()].map(([, , , , until]) => until));
    await write(now + 100);
    await until(() => retainedBy(second) >= now + 100);
    expect(retainedBy(second)).toBeLessThan(now + 10_000);
    await write(now + 10_000);
    await until(() => retainedBy(second) >= now + 10_000);
    const third = await instance(url);
    expect(retainedBy(third)).toBeGreaterThanOrEqual(now + 10_000);
  });

  it('a connected client → shared, and left connected', async () => {
    const { url } = await redis();
    const client = createClient({ url });
    client.on('error', () => undefined);
    await client.connect();
    onTestFinished(async () => void (await client.close()));
    const [first, second] = [await instance(client), await instance(url)];
    await second.revoke('ann');
    await until(() => first.refuses('ann'));
    first.revocations.close();
    expect(await client.ping()).toBe('PONG');
  });
});

describe('another writer in Redis', needs('redis-server'), () => {
  const [records, untils, epoch, sizes] = ['records', 'untils', 'epoch', 'sizes'].map(
    (name) => `portcullis:revocation:{all}:${name}`,
  ) as [string, string, string, string]; // one for each
  const keyOf = (sub: string, kind = 'sub'): string => JSON.stringify([issuer, kind, sub]);
  const seconds = (): number => Math.floor(Date.now() / 1000);
  /** A Redis, and another program that writes to it; errors of Redis are values. */
  const disturbed = async () => {
    const { url } = await redis();
    const client = createClient({ url });
    await client.on('error', () => undefined).connect();
    onTestFinished(async () => void (await client.close()));
    return { url, command: (...words: readonly string[]) => client.sendCommand([...words]).catch(String) };
  };

  it.each([
    ['a key that is not JSON', 'nonsense', 'x'],
    ['a value without numbers', keyOf('ann'), 'x y'],
    ['an empty value', keyOf('ann'), ''],
    ['a mark of 23 digits', keyOf('ann'), '99999999999999999999999 1999999999'],
    ['a mark with a fraction', keyOf('ann'), '1.5 1999999999'],
    ['a negative mark', keyOf('ann', 'sid'), '-16 1999999999'],
    ['an end of 20 digits', keyOf('ann', 'sid'), '16 99999999999999999999'],
    ['an end that is not a number', keyOf('ann', 'sid'), '16 NaN'],
    ['a key of numbers', '[1,2,3]', '16 1999999999'],
    ['a name of 5,000 characters', keyOf('a'.repeat(5000)), '16 1999999999'],
    ['a key without a name', '["a","sub"]', '16 1999999999'],
  ])('%s → counted and removed; a cutoff for this user reaches every instance', async (_title, key, value) => {
    const server = await disturbed();
    const first = await instance(server.url);
    await server.command('HSET', records, key, value);
    const second = await instance(server.url);
    expect([second.refuses('ann'), second.revocations.status().invalid]).toEqual([false, 1]);
    await until(async () => Number(await server.command('HLEN', records)) === 0);
    await server.command('HSET', records, key, value);
    await first.revoke('ann');
    await until(() => second.refuses('ann'));
    const third = await instance(server.url);
    expect(third.refuses('ann')).toBe(true);
  });

  it('a mark in the future → becomes now, in Redis too: a login after it is admitted, and nothing is locked', async () => {
    const server = await disturbed();
    const first = await instance(server.url);
    const future = encodeMark(seconds() + 86_400 * 365, 'logout');
    await server.command('HSET', records, keyOf('ann'), `${future} ${seconds() + 86_400 * 400}`);
    const second = await instance(server.url);
    const issuedAfter = (sub: string) => {
      const { check } = readRevocations('test', second.revocations);
      return check({ iss: issuer, sub, iat: seconds() + 2, exp: seconds() + 60 });
    };
    expect([second.refuses('ann'), issuedAfter('ann'), second.revocations.status().invalid]).toEqual([
      true,
      undefined,
      1,
    ]);
    await until(() => first.refuses('ann'));
    const stored = Number(String(await server.command('HGET', records, keyOf('ann'))).split(' ')[0]);
    expect(stored).toBeLessThan(future);
    const third = await instance(server.url);
    expect([third.refuses('ann'), third.revocations.status().invalid]).toEqual([true, 0]);
  });

  it.each([
    ['the records as a string', records],
    ['the ends as a string', untils],
    ['the epoch as a list', epoch],
    ['the sizes as a list', sizes],
  ])('%s → replaced, and the cutoffs are written back', async (_title, key) => {
    const server = await disturbed();
    const first = await instance(server.url);
    await first.revoke('ann');
    await server.command('DEL', key);
    await server.command(key === records || key === untils ? 'SET' : 'RPUSH', key, 'x');
    await until(async () => Number(await server.command('HLEN', records)) === 1);
    await until(async () => Number(await server.command('ZCARD', untils)) === 1);
    const second = await instance(server.url);
    const counted = first.revocations.status().invalid + second.revocations.status().invalid;
    expect([second.refuses('ann'), counted]).toEqual([true, 1]);
    await first.revoke('bob');
    await until(() => second.refuses('bob'));
  });

  it.each([
    ['one record', ['HDEL', records, keyOf('user-7')]],
    ['all records', ['DEL', records]],
    ['all ends', ['DEL', untils]],
    ['one end', ['ZREM', untils, keyOf('user-7')]],
  ])('%s deleted → written back by the instances that know them', async (_title, command) => {
    const server = await disturbed();
    const first = await instance(server.url);
    for (let i = 0; i < 10; i++) await first.revoke(`user-${i}`);
    await server.command(...command);
    const count = async () => [await server.command('HLEN', records), await server.command('ZCARD', untils)].join(' ');
    await until(async () => (await count()) === '10 10');
    const second = await instance(server.url);
    expect(second.refuses('user-7')).toBe(true);
  });

  it.each([
    ['EXPIRE of the records', ['EXPIRE', records, '1000']],
    ['EXPIRE of the ends', ['EXPIRE', untils, '1000']],
    ['an end in the past', ['ZADD', untils, '0', keyOf('ann')]],
  ])('%s → undone and counted, and a later instance knows the cutoff', async (_title, command) => {
    const server = await disturbed();
    const first = await instance(server.url);
    await first.revoke('ann');
    await server.command(...command);
    await until(() => first.revocations.status().invalid === 1);
    const kept = await Promise.all([
      server.command('TTL', records),
      server.command('TTL', untils),
      server.command('HLEN', records),
      server.command('ZCOUNT', untils, `${seconds()}`, '+inf'),
    ]);
    expect(kept.map(Number)).toEqual([-1, -1, 1, 1]);
    first.revocations.close();
    expect((await instance(server.url)).refuses('ann')).toBe(true);
  });

  it('an end that is far in the future → that of the record again, once it is written', async () => {
    const server = await disturbed();
    const first = await instance(server.url);
    await first.revoke('ann');
    await server.command('ZADD', untils, 'inf', keyOf('ann'));
    await first.revoke('ann');
    expect(Number(await server.command('ZCOUNT', untils, '-inf', '9999999999'))).toBe(1);
  });

  it.each([
    'nonsense',
    '{}',
    '[1]',
    '[["a","sub","b"]]',
    '[["a","sub","b",1e400,1e400]]',
    `[["${issuer}","sub","ann",99999999999999999999999,1999999999]]`,
  ])('the message %s → counted, and changes still arrive', async (message) => {
    const server = await disturbed();
    const [first, second] = [await instance(server.url), await instance(server.url)];
    await server.command('PUBLISH', 'portcullis:revocation:{all}:changes', message);
    await first.revoke('bob');
    await until(() => second.refuses('bob'));
    expect([second.refuses('ann'), second.revocations.status().invalid]).toEqual([false, 1]);
  });

  it('values that Redis keeps getting → the instance serves, and is loaded', async () => {
    const server = await disturbed();
    const first = await instance(server.url);
    for (let i = 0; i < 30; i++) {
      await server.command('HSET', records, `nonsense-${i}`, 'x');
      await server.command('SET', untils, 'x');
      await first.revoke(`user-${i}`);
    }
    const second = await instance(server.url);
    expect(second.revocations.status().loaded).toBe(true);
    await until(() => second.refuses('user-0') && second.refuses('user-29'));
    expect(first.states).toEqual(['up']);
  });
});

describe('groups of Redis', needs('redis-server', 'redis-sentinel'), () => {
  it('sentinels: a failover → cutoffs of before and after apply everywhere', async () => {
    const group = await startSentinels();
    onTestFinished(async () => void (await group.stop()));
    const [first, second] = [await instance(group.url), await instance(group.url)];
    await first.revoke('before');
    await until(() => second.refuses('before'));
    await group.failOver();
    await until(() =>
      first.revoke('after').then(
        () => true,
        () => false,
      ),
    );
    await until(() => second.refuses('after'));
    const fresh = await instance(group.url);
    expect([fresh.refuses('before'), fresh.refuses('after')]).toEqual([true, true]);
  });

  it('a cluster → cutoffs apply everywhere', async () => {
    const group = await startCluster();
    onTestFinished(async () => void (await group.stop()));
    const [first, second] = [await instance(group.url), await instance(group.url)];
    await first.revoke('ann');
    await until(() => second.refuses('ann'));
  });
});
