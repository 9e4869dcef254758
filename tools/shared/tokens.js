// Keys, claims and signatures of the tokens that the tools send.
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { signCompact } from '../../build/core/jose/sign.js';

export const subject = 'auth0|65f1c2d3e4b5a697881726354';

/**
 * Generates a key pair by way of PEM. On Node 20 the export of a generated key as JWK can hang during a garbage collection,
 * because the end of the generation and the export take the same lock.
 */
export function makeKeyPair(type, options) {
  const pair = generateKeyPairSync(type, {
    ...options,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return { publicKey: createPublicKey(pair.publicKey), privateKey: createPrivateKey(pair.privateKey) };
}

/** Generates a key of an issuer: `kid`, both halves, the PEM of the private half, and the published `jwk`. */
export function makeIssuerKey(alg, kid) {
  const pair =
    alg === 'RS256' ? makeKeyPair('rsa', { modulusLength: 2048 }) : makeKeyPair('ec', { namedCurve: 'P-256' });
  const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' };
  return { alg, kid, jwk, ...pair, pem: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) };
}

/**
 * Returns the public members of a JWK of an EC key.
 *
 * @param {import('node:crypto').JsonWebKey} jwk
 */
export const publicJwk = ({ crv, kty, x, y }) => ({ crv, kty, x, y });

/** Signs a compact JWS with the algorithm of its header. */
export function signJws(header, claims, key) {
  return signCompact(header, claims, { alg: header.alg, privateKey: key });
}

/**
 * Returns the claims of an access token, as large as a token of a hosted provider. `claims` replace them.
 *
 * @param {any} about issuer, audience, now in seconds, claims
 */
export function makeClaims({ issuer, audience, now, claims }) {
  return {
    iss: issuer,
    sub: subject,
    aud: [audience, `${issuer}userinfo`],
    iat: now,
    exp: now + 86_400,
    azp: 'm5Z2kQ8tY1bN4xV7cR0pL3wD6hJ9sF2g',
    scope: 'openid profile read:messages write:messages',
    jti: randomUUID(),
    permissions: ['read:messages', 'write:messages'],
    ...claims,
  };
}
