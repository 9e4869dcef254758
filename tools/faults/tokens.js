// Keys and access tokens of the provider, and the requests that carry them.
import { generateKeyPair, generateKeyPairSync } from 'node:crypto';
import { promisify } from 'node:util';
import { thumbprint } from '../../build/jose/jwk.js';
import { signCompact } from '../../build/jose/sign.js';

export const audience = 'https://api.example/';

const minute = 60;
const hour = 3600;
const generate = promisify(generateKeyPair);

/** Makes RS256 keys: each with its `kid`, its private half to sign with, and its public half as it is published. */
export async function makeKeys(count) {
  const pairs = await Promise.all(Array.from({ length: count }, () => generate('rsa', { modulusLength: 2048 })));
  return pairs.map(({ privateKey }, index) => {
    const key = { kid: `key-${index}`, privateKey };
    return { ...key, jwk: publish(key, 'RS256') };
  });
}

/** Makes a P-256 key: for tokens that are cheap to mint, or for proofs. */
export function makeEcKey(kid) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = { kid, privateKey };
  return { ...key, jwk: publish(key, 'ES256'), pem: privateKey.export({ format: 'pem', type: 'pkcs8' }) };
}

function publish({ kid, privateKey }, alg) {
  const { kty, n, e, crv, x, y } = privateKey.export({ format: 'jwk' });
  return { kty, n, e, crv, x, y, kid, alg, use: 'sig' };
}

/** The usual claims: good from a quarter of an hour ago for two hours more, so that no step of the clock matters. */
export function makeClaims(issuer, claims) {
  const now = Math.floor(Date.now() / 1000);
  return {
    iss: issuer,
    aud: audience,
    sub: 'user|1',
    iat: now - 15 * minute,
    exp: now + 2 * hour,
    scope: 'read:messages',
    ...claims,
  };
}

/** Mints a token. */
export function mint(key, issuer, claims = {}) {
  const { kid, privateKey } = key;
  return signCompact({ alg: 'RS256', typ: 'at+jwt', kid }, makeClaims(issuer, claims), { alg: 'RS256', privateKey });
}

/** Mints so many good tokens, no two of them equal. */
export function mintMany(key, issuer, count) {
  return Array.from({ length: count }, (_, index) => mint(key, issuer, { sub: `user|${index}` }));
}

/** A token that is bound to a P-256 key (RFC 9449 §6.1) by its thumbprint (RFC 7638 §3.2). */
export function mintBound(key, issuer, { jwk }) {
  return mint(key, issuer, { cnf: { jkt: thumbprint(jwk) } });
}

/** What every row sends all the time, and what must come of it: nine in ten good, the rest wrong in each usual way. */
export function steadyKinds(key, issuer) {
  const path = '/api/private-scoped';
  const now = Math.floor(Date.now() / 1000);
  const [good] = mintMany(key, issuer, 1);
  const one = (claims) => ({ type: 'fixed', path, tokens: [mint(key, issuer, claims)] });
  return [
    {
      name: 'good',
      weight: 85,
      expect: [200],
      timed: true,
      source: { type: 'fixed', path, tokens: mintMany(key, issuer, 50) },
    },
    { name: 'public', weight: 5, expect: [200], source: { type: 'fixed', path: '/api/public', tokens: [] } },
    { name: 'expired', weight: 2, expect: [401], source: one({ exp: now - 15 * minute }) },
    { name: 'foreign audience', weight: 2, expect: [401], source: one({ aud: 'https://other.example/' }) },
    { name: 'foreign issuer', weight: 2, expect: [401], source: one({ iss: 'https://other.example/' }) },
    { name: 'bad signature', weight: 2, expect: [401], source: { type: 'forged', path, token: good } },
    { name: 'no scope', weight: 2, expect: [403], source: one({ scope: 'read:other' }) },
  ];
}
