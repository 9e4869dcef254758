// Keys and access tokens of the provider, and the requests that carry them.
import { thumbprint } from '../../build/core/jose/jwk.js';
import { makeIssuerKey, makeClaims as makeUsualClaims, signJws } from '../shared/tokens.js';

export const audience = 'https://api.example/';

const minute = 60;
const hour = 3600;

/** Generates RS256 keys of an issuer. */
export const makeKeys = (count) => Array.from({ length: count }, (_, index) => makeIssuerKey('RS256', `key-${index}`));

/** Generates a P-256 key, for tokens that are cheap to sign or for proofs. */
export const makeEcKey = (kid) => makeIssuerKey('ES256', kid);

/** Returns claims that are valid from 15 minutes ago for 2 hours, so that no step of the clock matters. */
export function makeClaims(issuer, claims) {
  const now = Math.floor(Date.now() / 1000) - 15 * minute;
  return makeUsualClaims({ issuer, audience, now, claims: { exp: now + 2 * hour + 15 * minute, ...claims } });
}

/** Mints a token. */
export function mint(key, issuer, claims = {}) {
  const { kid, privateKey } = key;
  return signJws({ alg: 'RS256', typ: 'at+jwt', kid }, makeClaims(issuer, claims), privateKey);
}

/** Signs N different valid tokens. */
export function mintMany(key, issuer, count) {
  return Array.from({ length: count }, (_, index) => mint(key, issuer, { sub: `user|${index}` }));
}

/** A token that is bound to a P-256 key (RFC 9449 §6.1) by its thumbprint (RFC 7638 §3.2). */
export function mintBound(key, issuer, { jwk }) {
  return mint(key, issuer, { cnf: { jkt: thumbprint(jwk) } });
}

/**
 * Returns the requests of every row with their expected statuses: nine of ten valid, the others with the usual defects.
 */
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
