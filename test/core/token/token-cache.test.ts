import { describe, expect, it } from 'vitest';
import type { KeySet } from '../../../src/core/keys/key-set.ts';
import { Refused } from '../../../src/core/refused.ts';
import type { IssuerRules, VerifiedToken } from '../../../src/core/token/access-token.ts';
import type { RegisteredClaims } from '../../../src/core/token/claims.ts';
import { parseScope } from '../../../src/core/token/grants.ts';
import { createTokenCache, type TokenCache } from '../../../src/core/token/token-cache.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const now = 1_800_000_000;
const kid = 'k1';
const alg = 'RS256';

const issuers = [createTestIssuer(), createTestIssuer()] as const;
const keyOf = (index: 0 | 1) => {
  const found = issuers[index].keys.find(issuers[index].kid, alg);
  if (found === undefined) throw new Error('The test issuer has no key.');
  return found;
};

/** A key set whose keys and state the test changes. */
function createChangingKeySet() {
  const state = { generation: 1, usable: true, published: true, key: keyOf(0) };
  const asked = { find: 0 };
  const keys: KeySet = {
    find: (name) => {
      asked.find++;
      return state.usable && state.published && name === kid ? state.key : undefined;
    },
    has: () => state.published,
    usable: () => state.usable,
    refetch: () => undefined,
    get generation() {
      return state.generation;
    },
  };
  return { keys, state, asked, first: keyOf(0), other: keyOf(1) };
}

function createCase(claims: Partial<RegisteredClaims> = {}, options?: Parameters<typeof createTokenCache>[0]) {
  const { keys, state, asked, first, other } = createChangingKeySet();
  const issuer: IssuerRules = {
    issuer: 'https://issuer.test/',
    keys,
    algorithms: new Set([alg]),
    audiences: new Set(['api']),
    expTolerance: 5,
    nbfTolerance: 5,
    subject: 'required',
    permissionsClaim: 'permissions',
  };
  const list = new Map([[issuer.issuer, issuer]]);
  const verified: VerifiedToken = {
    claims: { iss: issuer.issuer, exp: now + 60, iat: now - 60, ...claims },
    scopes: parseScope('read:messages'),
    jkt: undefined,
    certificate: undefined,
    verifiedBy: { issuer, kid, alg, key: first, generation: state.generation },
  };
  const cache = createTokenCache(options);
  keep(cache, 'token', verified);
  const find = (time = now, trusted: ReadonlyMap<string, IssuerRules> = list): VerifiedToken | string | undefined => {
    const found = cache.find('token', trusted, time);
    return found instanceof Refused ? found.reason : found;
  };
  return { cache, verified, state, asked, other, find, list, issuer };
}

/** A token is kept when it comes for the second time. */
function keep(cache: TokenCache, token: string, verified: VerifiedToken): void {
  cache.remember(token, verified);
  cache.remember(token, verified);
}

it('a token that comes for the first time: noted → kept when it comes again', () => {
  const { cache, verified, list } = createCase();
  const token = 'header.payload.signature-of-a-new-token';
  cache.remember(token, verified);
  expect(cache.find(token, list, now)).toBeUndefined();
  expect(cache.status().entries).toBe(1);
  cache.remember(token, verified);
  expect(cache.find(token, list, now)).toBe(verified);
});

describe('a token that was verified', () => {
  it('found by its string, without a key look-up', () => {
    const { find, verified, asked } = createCase();
    expect(find()).toBe(verified);
    expect(asked.find).toBe(0);
  });

  it('not found by another string', () => {
    const { cache, list } = createCase();
    expect(cache.find('another', list, now)).toBeUndefined();
  });

  it('another string with the same end → not found, and the token stays', () => {
    const { cache, list, verified } = createCase();
    const end = `.${'s'.repeat(342)}`;
    keep(cache, `header.payload${end}`, verified);
    expect(cache.find(`header.payloae${end}`, list, now)).toBeUndefined();
    expect(cache.find(`header.payload.longer${end}`, list, now)).toBeUndefined();
    expect(cache.find(end.slice(-22), list, now)).toBeUndefined();
    expect(cache.find(`header.payload${end}`, list, now)).toBe(verified);
  });

  it.each([
    ['exp, a moment before', {}, now + 64.999, undefined],
    ['exp with the tolerance', {}, now + 65, 'expired'],
    ['nbf with the tolerance', { nbf: now }, now - 5, undefined],
    ['before nbf, where the clock is set back', { nbf: now }, now - 5.001, 'not_yet_valid'],
    ['before iat, where the clock is set back', { iat: now }, now - 5.001, 'issued_in_future'],
  ] as const)('%s → checked at every hit', (_name, claims, time, reason) => {
    const { find, verified } = createCase(claims);
    expect(find()).toBe(verified);
    expect(find(time)).toBe(reason ?? verified);
    expect(find()).toBe(verified);
  });
});

describe('the issuers of a request', () => {
  it('another list → not found, and found again by the list that has its issuer', () => {
    const { find, verified } = createCase();
    expect(find(now, new Map())).toBeUndefined();
    expect(find()).toBe(verified);
  });

  it('the same issuer under other rules → not found', () => {
    const { find, issuer } = createCase();
    const others: IssuerRules = { ...issuer, audiences: new Set(['another']) };
    expect(find(now, new Map([[issuer.issuer, others]]))).toBeUndefined();
  });
});

describe('the key that it was verified by', () => {
  it('withdrawn → gone, and it does not come back with the key', () => {
    const { find, state, cache } = createCase();
    state.published = false;
    state.generation++;
    expect(find()).toBeUndefined();
    state.published = true;
    expect(find()).toBeUndefined();
    expect(cache.status().entries).toBe(0);
  });

  it('still published with others → found, without a look-up afterwards', () => {
    const { find, state, asked, verified } = createCase();
    state.generation++;
    expect(find()).toBe(verified);
    const before = asked.find;
    expect(find()).toBe(verified);
    expect(asked.find).toBe(before);
  });

  it('another key under the same kid → gone', () => {
    const { find, state, other } = createCase();
    state.key = other;
    state.generation++;
    expect(find()).toBeUndefined();
  });

  it('key set too old for verification → not found', () => {
    const { find, state } = createCase();
    state.usable = false;
    expect(find()).toBeUndefined();
  });
});

describe('bounds', () => {
  const fill = (count: number, options: Parameters<typeof createTokenCache>[0], length = 800) => {
    const { cache, verified } = createCase({}, options);
    const start = 'x'.repeat(length);
    for (let i = 0; i < count; i++) keep(cache, `${start}${String(i).padStart(22, '0')}`, verified);
    return cache;
  };

  it('entries → the one that was used last stays', () => {
    const { cache, verified, list } = createCase({}, { maxEntries: 3 });
    for (const token of ['a', 'b']) keep(cache, token, verified);
    cache.find('token', list, now);
    keep(cache, 'c', verified);
    expect(cache.find('a', list, now)).toBeUndefined();
    for (const token of ['token', 'b', 'c']) expect(cache.find(token, list, now)).toBe(verified);
  });

  it('bytes → fewer of longer tokens', () => {
    const options = { maxBytes: 100_000 };
    const short = fill(1000, options, 50).status();
    const long = fill(1000, options, 8000).status();
    expect(short.bytes).toBeLessThanOrEqual(100_000);
    expect(long.bytes).toBeLessThanOrEqual(100_000);
    expect(short.entries).toBeGreaterThan(4 * long.entries);
    expect(long.entries).toBeGreaterThan(0);
  });

  it('of one entry and one byte → allowed, and nothing fits', () => {
    const { cache } = createCase({}, { maxEntries: 1, maxBytes: 1 });
    expect(cache.status()).toMatchObject({ entries: 0, bytes: 0 });
  });

  it('by default 10 000 tokens of usual length', () => expect(fill(12_000, undefined).status().entries).toBe(10_000));

  it.each([{ maxEntries: 0 }, { maxEntries: Number.NaN }, { maxBytes: 0 }])(
    '%j → TypeError that says the fix',
    (options) =>
      expect(() => createTokenCache(options)).toThrow(new TypeError('tokenCache: write bounds of 1 or more, or off')),
  );
});

it('figures: hits and misses are counted', () => {
  const { cache, find, state, list } = createCase();
  find();
  find();
  find(now + 999);
  cache.find('another', list, now);
  state.usable = false;
  find();
  expect(cache.status()).toMatchObject({ entries: 0, hits: 2, misses: 2 });
});
