import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { KeySet } from '../../src/keys/key-set.ts';
import type { IssuerRules, VerifiedToken } from '../../src/token/access-token.ts';
import { createTokenCache } from '../../src/token/token-cache.ts';

const now = 1_700_000_000;
const makeKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
const key = makeKey();

/** What is published, and may change in a test. */
interface Published {
  key: KeyObject | undefined;
  generation: number;
  usable: boolean;
}

function createWorld() {
  const published: Published = { key, generation: 1, usable: true };
  const keys: KeySet = {
    find: () => published.key,
    has: () => true,
    usable: () => published.usable,
    refetch: () => undefined,
    get generation() {
      return published.generation;
    },
  };
  const rules: IssuerRules = {
    issuer: 'https://idp.example/',
    keys,
    algorithms: new Set(['ES256']),
    audiences: new Set(['api']),
    expTolerance: 5,
    nbfTolerance: 5,
    subject: 'required',
    permissionsClaim: 'permissions',
  };
  const verified: VerifiedToken = {
    claims: { iss: rules.issuer, exp: now + 60, iat: now },
    scopes: new Set(),
    jkt: undefined,
    certificate: undefined,
    verifiedBy: { issuer: rules, kid: 'k', alg: 'ES256', key, generation: 1 },
  };
  const cache = createTokenCache();
  cache.remember('digest', verified, 900);
  return { cache, published, rules, verified, issuers: new Map([[rules.issuer, rules]]) };
}

describe('a token that was verified', () => {
  it('is found, by its digest alone', () => {
    const { cache, issuers, verified } = createWorld();
    expect(cache.find('digest', issuers, now)).toBe(verified);
    expect(cache.find('other', issuers, now)).toBeUndefined();
    expect(cache.status()).toEqual({ entries: 1, bytes: 900 * 3 + 1024, hits: 1, misses: 1 });
  });

  it('is not found where its issuer is not in the list, and stays for the list that has it', () => {
    const { cache, issuers, verified } = createWorld();
    expect(cache.find('digest', new Map(), now)).toBeUndefined();
    expect(cache.find('digest', issuers, now)).toBe(verified);
  });

  it('is not found where the issuer has other rules in the list', () => {
    const { cache, rules } = createWorld();
    const others = { ...rules, audiences: new Set(['another api']) };
    expect(cache.find('digest', new Map([[rules.issuer, others]]), now)).toBeUndefined();
  });

  it.each([
    ['has expired, tolerance included', now + 65, 'expired'],
    ['was issued in the future', now - 6, 'issued_in_future'],
  ])('%s → refused by the rules of its issuer', (_name, at, reason) => {
    const { cache, issuers } = createWorld();
    expect(() => cache.find('digest', issuers, at)).toThrow(expect.objectContaining({ reason }));
  });

  it('is found while clocks agree within the tolerance', () => {
    const { cache, issuers, verified } = createWorld();
    expect(cache.find('digest', issuers, now + 64)).toBe(verified);
  });
});

describe('the key of a token', () => {
  it('is withdrawn → the token is forgotten', () => {
    const { cache, issuers, published } = createWorld();
    Object.assign(published, { key: undefined, generation: 2 });
    expect(cache.find('digest', issuers, now)).toBeUndefined();
    expect(cache.status().entries).toBe(0);
  });

  it('is replaced under its name → the token is forgotten', () => {
    const { cache, issuers, published } = createWorld();
    Object.assign(published, { key: makeKey(), generation: 2 });
    expect(cache.find('digest', issuers, now)).toBeUndefined();
  });

  it('is published still, in a newer set → the token is found, and again', () => {
    const { cache, issuers, published, verified } = createWorld();
    published.generation = 2;
    expect(cache.find('digest', issuers, now)).toBe(verified);
    expect(cache.find('digest', issuers, now)).toBe(verified);
  });

  it('is in a set that is not fit to judge by → the token is forgotten', () => {
    const { cache, issuers, published } = createWorld();
    published.usable = false;
    expect(cache.find('digest', issuers, now)).toBeUndefined();
  });
});

it.each([{ maxEntries: 0 }, { maxBytes: 0 }, { maxEntries: Number.NaN }])('bounds of %j → TypeError', (options) => {
  expect(() => createTokenCache(options)).toThrow(/^tokenCache: /);
});
