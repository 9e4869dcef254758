import { generateKeyPairSync } from 'node:crypto';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { signCompact } from '../../../src/core/jose/sign.ts';
import type { CachedKeys, KeyCache } from '../../../src/core/keys/key-cache.ts';
import { createKeySet } from '../../../src/core/keys/key-set.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';

const issuer = 'https://idp.example/';
const metadata = `${issuer}.well-known/openid-configuration`;
const seconds = Math.floor(Date.now() / 1000);
const makeKey = (kid: string) => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256' } };
};
const [old, fresh] = [makeKey('old'), makeKey('fresh')];

/** A provider that publishes the key `fresh`, or is down, and a server with this cache. */
function open(
  keyCache: Partial<KeyCache>,
  options: { readonly isDown?: boolean; readonly jwksUri?: string; readonly maxAge?: number } = {},
) {
  const requested: string[] = [];
  const written: (readonly [string, CachedKeys])[] = [];
  const headers = options.maxAge === undefined ? {} : { 'cache-control': `max-age=${options.maxAge}` };
  const server = createResourceServer({
    ...{ issuer, audience: 'api', algorithms: ['ES256'] },
    ...(options.jwksUri !== undefined && { jwksUri: options.jwksUri }),
    keyCache: { read: () => undefined, write: (...set) => void written.push(set), ...keyCache },
    fetch: async (url) => {
      requested.push(url);
      if (options.isDown === true) throw new Error();
      return Response.json(url === metadata ? { issuer, jwks_uri: `${issuer}keys` } : { keys: [fresh.jwk] }, {
        headers,
      });
    },
  });
  onTestFinished(server.close);
  const judge = async ({ kid, privateKey }: typeof old) => {
    const claims = { iss: issuer, aud: 'api', sub: 'user', iat: seconds, exp: seconds + 3600 };
    const token = signCompact({ alg: 'ES256', kid }, claims, { alg: 'ES256', privateKey });
    const request = {
      method: 'GET',
      url: 'https://api.example/',
      headers: new Headers({ authorization: `Bearer ${token}` }),
    };
    const outcome = await server.judge(request);
    return 'reason' in outcome ? outcome.reason : 'admitted';
  };
  return { judge, requested, written };
}

const holding = (stored: unknown): Partial<KeyCache> => ({ read: async () => stored });
const aged = (age: number, more: object = {}) => ({ keys: [old.jwk], fetchedAt: seconds - age, ...more });

afterEach(() => void vi.useRealTimers());

describe('keys of a cache', () => {
  it.each([
    ['of the metadata', undefined, metadata],
    ['of the keys', 'https://idp.example/jwks', 'https://idp.example/jwks'],
  ])('fresh, by the URL %s → admitted without a fetch', async (_, jwksUri, expected) => {
    const read = vi.fn(async (_url: string) => aged(540));
    const { judge, requested, written } = open({ read }, jwksUri === undefined ? {} : { jwksUri });
    expect([await judge(old), read.mock.calls, requested, written]).toEqual(['admitted', [[expected]], [], []]);
  });

  it.each<[string, object, boolean, string]>([
    ['older than 10 minutes, the provider responds', aged(601), false, 'unknown_kid'],
    ['older than 10 minutes, the provider is down', aged(601), true, 'admitted'],
    ['older than freshness and the stale period, the provider is down', aged(600 + 3600 + 1), true, 'keys_unavailable'],
    ['older than their max-age, the provider responds', aged(61, { maxAge: 60 }), false, 'unknown_kid'],
    ['of a long max-age', aged(3000, { maxAge: 1e9 }), true, 'admitted'],
    ['older than the longest max-age, the provider responds', aged(3601, { maxAge: 1e9 }), false, 'unknown_kid'],
  ])('%s', async (_, stored, isDown, expected) =>
    expect(await open(holding(stored), { isDown }).judge(old)).toBe(expected),
  );

  it.each<[string, Partial<KeyCache>]>([
    ['a date in the future', holding(aged(-2))],
    ['no date', holding({ keys: [old.jwk] })],
    ['a date as a string', holding({ ...aged(1), fetchedAt: String(seconds) })],
    ['no keys', holding({ keys: [], fetchedAt: seconds })],
    ['not a key set', holding({ keys: 'none', fetchedAt: seconds })],
    ['JSON as a string', holding(JSON.stringify(aged(1)))],
    ['null', holding(null)],
    ['a symmetric key', holding(aged(1, { keys: [{ kty: 'oct', k: 'AAAA', kid: 'old' }] }))],
    ['an error', { read: () => Promise.reject(new Error()) }],
    [
      'a thrown error',
      {
        read: () => {
          throw new Error();
        },
      },
    ],
  ])('%s → a miss, and the keys are fetched', async (_, cache) => {
    const { judge, requested, written } = open(cache);
    expect([await judge(fresh), requested.length, written.length]).toEqual(['admitted', 2, 1]);
    expect(await judge(old)).toBe('unknown_kid');
  });

  it('no result within 250 ms → a miss', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { judge, requested } = open({ read: () => new Promise(() => undefined) });
    const judged = judge(fresh);
    await vi.advanceTimersByTimeAsync(249);
    expect(requested).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await judged).toBe('admitted');
  });

  it('fresh, without the key of the token → fetched within the request, for tokens and logout tokens', async () => {
    const { judge, requested } = open(holding(aged(1)));
    expect(await judge(fresh)).toBe('admitted');
    expect(requested).toHaveLength(2);
  });

  it('a set that is loaded once → read, and refreshed before its end', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const requested: string[] = [];
    const keys = createKeySet({
      ...{ jwksUri: `${issuer}keys`, mode: 'once', random: () => 1 },
      keyCache: { read: () => aged(400), write: () => undefined },
      fetch: async (url) => {
        requested.push(url);
        return Response.json({ keys: [fresh.jwk] });
      },
    });
    onTestFinished(keys.close);
    await keys.ready();
    expect(keys.find('old', 'ES256')).toBeDefined();
    expect(requested).toEqual([]);
    await vi.advanceTimersByTimeAsync(80_100);
    expect([requested.length, keys.find('fresh', 'ES256') !== undefined]).toEqual([1, true]);
  });
});

describe('writing to a cache', () => {
  it.each([
    [undefined, {}],
    [120, { maxAge: 120 }],
  ])('max-age %s → the keys, public only, and the time of the fetch', async (maxAge, more) => {
    const { judge, written } = open({}, maxAge === undefined ? {} : { maxAge });
    await judge(fresh);
    await vi.waitFor(() => expect(written).toHaveLength(1), 20_000);
    const [[url, set] = []] = written;
    expect([url, set]).toEqual([metadata, { keys: [fresh.jwk], fetchedAt: expect.any(Number), ...more }]);
    expect(Math.abs(Number(set?.fetchedAt) - Date.now() / 1000)).toBeLessThan(60);
  });

  it('a later set of another process → stays', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const stored = { value: undefined as unknown };
    let reads = 0;
    const { judge, written } = open({
      async read() {
        // Written by another process, after this one has fetched.
        if (reads++ > 0) vi.setSystemTime(Date.now() + 2000);
        if (reads > 1) stored.value = { keys: [old.jwk], fetchedAt: Math.floor(Date.now() / 1000) };
        return stored.value;
      },
    });
    expect(await judge(fresh)).toBe('admitted');
    await vi.waitFor(() => expect(reads).toBe(2), 20_000);
    await new Promise(setImmediate);
    expect(written).toEqual([]);
  });

  it('a write that hangs, or fails → no request waits for it', async () => {
    for (const write of [() => new Promise(() => undefined), () => Promise.reject(new Error())]) {
      expect(await open({ write }).judge(fresh)).toBe('admitted');
    }
  });

  it('sets that follow each other → one write at a time, the last one last; a write without end → the next after 10 s', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const ends: (() => void)[] = [];
    const kids: unknown[] = [];
    const published = [old, fresh, ...['newest', 'waits', 'next'].map(makeKey)];
    let now = 0;
    const keys = createKeySet({
      ...{ jwksUri: `${issuer}keys`, now: () => now },
      keyCache: {
        read: () => undefined,
        write(_url, set) {
          kids.push(...set.keys.map((key) => Reflect.get(key, 'kid')));
          return new Promise<void>((resolve) => ends.push(resolve));
        },
      },
      fetch: async () => Response.json({ keys: [published.shift()?.jwk] }),
    });
    onTestFinished(keys.close);
    await keys.ready();
    const refetch = () => {
      now += 10;
      return keys.refetch();
    };
    await refetch();
    await refetch();
    expect(kids).toEqual(['old']);
    ends[0]?.();
    await vi.waitFor(() => expect(kids).toEqual(['old', 'newest']), 20_000);
    await refetch();
    vi.setSystemTime(Date.now() + 10_000);
    await refetch();
    await vi.waitFor(() => expect(kids).toEqual(['old', 'newest', 'next']), 20_000);
  });
});

it.each([{ read: () => undefined }, { write: () => undefined }, 'cache'])('%j as keyCache → TypeError', (keyCache) => {
  const options = { issuer, audience: 'api', keyCache } as never;
  expect(() => createResourceServer(options)).toThrow(/keyCache: write \{ read\(url\)/);
});
