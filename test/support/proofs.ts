import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { algorithms } from '../../src/core/jose/jws.ts';
import { signBytes, writeCompact } from '../../src/core/jose/sign.ts';
import { takeRsaKeys } from './rsa-keys.ts';

/** A key pair with the public half as a JWK. */
export interface ProofKey {
  readonly privateKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;
}

/** Changes of a valid proof; `undefined` removes a member. */
export interface ProofChanges {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Strings instead of the JSON of header and claims. */
  readonly headerText?: string;
  readonly claimsText?: string;
  /** The signing key, also in the header. */
  readonly key?: ProofKey;
  /** The signing key instead of `key`. */
  readonly signer?: ProofKey;
  /** Signs by this `alg` whatever the header says. */
  readonly signAs?: string;
}

type Alg = 'ES256' | 'ES384' | 'EdDSA' | 'RS256' | 'PS256';

const makers: Readonly<Record<Alg | 'RS1024' | 'P-521', () => { readonly privateKey: KeyObject }>> = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'P-521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
  RS256: takeRsaKeys,
  PS256: takeRsaKeys,
  RS1024: () => generateKeyPairSync('rsa', { modulusLength: 1024 }),
};

/** Makes a new key that fits an algorithm, or one of two that fit none. */
export function makeProofKey(kind: keyof typeof makers = 'ES256'): ProofKey {
  const { privateKey } = makers[kind]();
  const { kty, crv, x, y, n, e } = privateKey.export({ format: 'jwk' });
  return { privateKey, jwk: JSON.parse(JSON.stringify({ kty, crv, x, y, n, e })) };
}

/** The thumbprint of a JWK (RFC 7638), written down apart from the one under test. */
export function thumbprintOf({ crv, e, kty, n, x, y }: Readonly<Record<string, unknown>>): string {
  return createHash('sha256').update(JSON.stringify({ crv, e, kty, n, x, y })).digest('base64url');
}

/** `ath` of an access token. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token, 'latin1').digest('base64url');
}

/** Encodes a string as base64url. */
export function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}

/** Signs any header and claims with `alg`, or with ES256 if the name is not an algorithm. */
function signAs(alg: string, input: Uint8Array, { privateKey }: ProofKey): Buffer {
  return signBytes(input, { alg: algorithms.has(alg) ? alg : 'ES256', privateKey });
}

/** Signs a string; returns the signature in base64url. */
export function signText(text: string, alg: string, key: ProofKey): string {
  return signAs(alg, Buffer.from(text), key).toString('base64url');
}

/** A proof that is good in everything but the changes; the claims say what the test needs. */
export function mintProof(
  claims: Readonly<Record<string, unknown>>,
  changes: ProofChanges & { key: ProofKey },
): string {
  const { key, signer = key } = changes;
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: key.jwk, ...changes.header };
  return writeCompact({
    header: changes.headerText ?? JSON.stringify(header),
    payload: changes.claimsText ?? JSON.stringify({ ...claims, ...changes.claims }),
    sign: (input) => signAs(changes.signAs ?? String(header.alg), input, signer),
  });
}

/** The private half as a JWK. */
export function privateJwk({ privateKey }: ProofKey): Readonly<Record<string, unknown>> {
  return createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' })).export({ format: 'jwk' });
}
